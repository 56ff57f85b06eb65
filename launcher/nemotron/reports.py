"""What the runner says of itself in the folder of its results, read where that folder is."""

import json
from collections.abc import Mapping
from typing import Any

from nemotron.errors import LauncherError
from nemotron.jobs import Record

PROGRESS, SUMMARY = "progress.json", "summary.json"


def progress_of(record: Record, environ: Mapping[str, str]) -> dict[str, Any]:
    """How far it is, and how fast; empty before its first word, and where its folder is out of reach."""
    return _read(record, PROGRESS, environ)


def summary_of(record: Record, environ: Mapping[str, str]) -> dict[str, str]:
    """How its tasks ended."""
    return _read(record, SUMMARY, environ)


def _read(record: Record, name: str, environ: Mapping[str, str]) -> dict[str, Any]:
    try:
        content = json.loads(record.executor(environ).read(f"{record.output_dir}/{name}"))
    except (OSError, ValueError, LauncherError):
        return {}
    return content if isinstance(content, dict) else {}
