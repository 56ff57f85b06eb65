"""The job's runner as one file that any Python starts: found where the job side is installed, never imported."""

import importlib.util
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from nemotron.errors import LauncherError

PACKAGE = "nemo_evaluator"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def build_runner() -> bytes:
    """A zip application; equal sources make equal bytes."""
    package = _job_side()
    contents: dict[str, str] = json.loads((package / "direct" / "pack.json").read_text(encoding="utf-8"))
    return zip_application({name: (package / source).read_bytes() for name, source in contents.items()})


def zip_application(files: Mapping[str, bytes]) -> bytes:
    """`__main__.py` is what runs."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in sorted(files.items()):
            _add(file, name, content)
    return archive.getvalue()


def _add(file: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _LONG_AGO)
    entry.compress_type = zipfile.ZIP_DEFLATED
    file.writestr(entry, content)


def _job_side() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise LauncherError(
            f"{PACKAGE} is not installed beside nemotron: install both with `pip install nemo-evaluator`."
        )
    return Path(spec.submodule_search_locations[0])
