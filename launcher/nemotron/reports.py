"""What runners say of themselves in the folders of their results, read where these are."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nemotron.errors import LauncherError
from nemotron.jobs import Record, by_backend

PROGRESS, SUMMARY = "progress.json", "summary.json"


@dataclass(frozen=True, slots=True)
class Report:
    """Empty before the first word of a runner, and where its folder is out of reach."""

    progress: Mapping[str, Any] = field(default_factory=dict)
    """How far it is, and how fast."""
    summary: Mapping[str, str] = field(default_factory=dict)
    """How its tasks ended."""


def reports_of(records: Sequence[Record], environ: Mapping[str, str]) -> dict[str, Report]:
    """By the id of the record; each backend is asked once for all of its own."""
    groups, _ = by_backend(records)
    texts: dict[str, Mapping[str, str]] = {}
    for group in groups:
        paths = [f"{record.output_dir}/{name}" for record in group for name in (PROGRESS, SUMMARY)]
        try:
            found = group[0].executor(environ).read(paths)
        except LauncherError:
            continue
        texts |= {record.id: found for record in group}
    return {record.id: _report(record, texts.get(record.id, {})) for record in records}


def _report(record: Record, texts: Mapping[str, str]) -> Report:
    progress, summary = (_object(texts.get(f"{record.output_dir}/{name}", "")) for name in (PROGRESS, SUMMARY))
    return Report(progress, summary)


def _object(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
