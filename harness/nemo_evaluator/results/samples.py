"""What each single question scored, from the files that a harness left: samples_*.jsonl, or our own results.jsonl."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nemo_evaluator.results.jsonl import parse_line

SAMPLES_FILE = re.compile(r"samples_(?P<part>.+)_(?P<at>\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl")
OWN_METRIC = "mean_reward"

Item = tuple[Any, ...]
"""Of a benchmark: the same in every run that asked the same question."""


@dataclass(slots=True)
class Sampled:
    """One metric of one task."""

    values: dict[Item, dict[int, float]] = field(default_factory=dict)
    """Item -> repeat -> score."""
    errors: set[tuple[Item, int]] = field(default_factory=set)
    """Where a request failed: no answer, so neither right nor wrong."""

    def add(self, item: Item, repeat: int, value: Any) -> None:
        if isinstance(value, int | float) and value == value:  # null and NaN are no score
            self.values.setdefault(item, {})[repeat] = float(value)
        else:
            self.errors.add((item, repeat))


Samples = dict[tuple[str, str], Sampled]
"""By part of the task and metric."""


def read_samples(folder: Path, task: str) -> Samples:
    """Line by line; nothing of a question but its scores stays in memory."""
    found: Samples = {}
    own = folder / "results.jsonl"
    if own.is_file():
        for row in _rows(own):
            sampled = found.setdefault((task, OWN_METRIC), Sampled())
            sampled.add((row.get("problem_idx"),), row.get("repeat", 0), row.get("reward"))
        return found
    for part, path in sorted(_newest(folder.rglob("samples_*.jsonl")).items()):
        for row in _rows(path):
            _enter(found, part, row)
    return found


def _newest(paths: Iterable[Path]) -> dict[str, Path]:
    """A task that was run again in its folder has left a file for each time."""
    stamped: dict[str, tuple[str, Path]] = {}
    for path in paths:
        if match := SAMPLES_FILE.fullmatch(path.name):
            stamped[match["part"]] = max(stamped.get(match["part"], ("", path)), (match["at"], path))
    return {part: path for part, (_, path) in stamped.items()}


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as lines:
        for line in lines:
            if row := parse_line(line):
                yield row


def _enter(found: Samples, part: str, row: dict[str, Any]) -> None:
    """A row is one question under one filter, with a number for each of its metrics; a metric that only the whole set
    has (F1, perplexity) brings a pair or a list instead, and is left to the harness's own score."""
    item = (row.get("doc_id"), row.get("doc_hash"))
    suffix = "" if row.get("filter") in (None, "none") else f"__{row['filter']}"
    for metric in row.get("metrics") or ():
        value = row.get(metric)
        if not isinstance(value, list | tuple | dict | str):
            found.setdefault((part, metric + suffix), Sampled()).add(item, 0, value)
