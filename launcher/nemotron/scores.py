"""The scores of a direct-mode folder as a table, from the results.yml that every harness leaves."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml


class Score(NamedTuple):
    task: str
    metric: str
    value: float
    stderr: float | None
    """None where the harness gives none."""
    samples: int | None


def score_lines(output_dir: Path, tasks: Sequence[str]) -> list[str]:
    """One line a score, under a head; nothing for tasks that left no results."""
    scores = [score for task in tasks for score in read_scores(output_dir / task)]
    if not scores:
        return []
    table = [("task", "metric", "score", "stderr", "samples"), *(_cells(score) for score in scores)]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def read_scores(folder: Path) -> Iterator[Score]:
    path = folder / "results.yml"
    if not path.is_file():
        return
    content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    for task, result in content.get("results", {}).get("tasks", {}).items():
        for metric in result["metrics"].values():
            for name, score in metric["scores"].items():
                yield _score(task, name, score)


def _score(task: str, name: str, score: dict[str, Any]) -> Score:
    stats = score.get("stats") or {}
    return Score(task, name, float(score["value"]), stats.get("stderr"), stats.get("count"))


def _cells(score: Score) -> tuple[str, ...]:
    stderr = "" if score.stderr is None else f"{score.stderr:.4f}"
    count = "" if score.samples is None else f"{score.samples:,}"
    return score.task, score.metric, f"{score.value:.4f}", stderr, count
