"""Files that are there whole or not at all."""

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_bytes(path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Replaces `path` in one step; readable by its owner alone, as temporary files are."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
