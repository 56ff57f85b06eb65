"""The job's runner as one file that any Python starts: found where the job side is installed, never imported."""

import importlib.util
import io
import zipfile
from pathlib import Path

from nemotron.errors import LauncherError

PACKAGE = "nemo_evaluator"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def build_runner() -> bytes:
    """A zip application; equal sources make equal bytes."""
    folder = _job_side() / "direct"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        _add(file, "__main__.py", (folder / "__main__.py").read_bytes())
        _add(file, f"{PACKAGE}/__init__.py", b"")  # a regular package, which wins over the one an image may hold
        for path in sorted(folder.rglob("*.py")):
            _add(file, f"{PACKAGE}/direct/{path.relative_to(folder).as_posix()}", path.read_bytes())
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
