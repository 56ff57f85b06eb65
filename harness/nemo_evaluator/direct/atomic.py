"""Run files are replaced as a whole: whoever reads one, or kills us while we write one, finds the old or the new."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from nemo_evaluator.direct.errors import StorageFailed


def write_json(path: Path, document: Any) -> None:
    write_text(path, json.dumps(document, indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.tmp")  # one writer: it has the claim
    try:
        with temporary.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise StorageFailed(
            f"{path} cannot be written ({error.strerror}): make room or mend the storage, then go on with resume=true."
        ) from error


def read_json(path: Path) -> dict[str, Any]:
    """The object in the file; an empty one when there is none, or something else in its place."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
