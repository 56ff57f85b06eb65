"""The mean reward of every group of samples: by category, by extraction method, by any label with few values."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nemo_evaluator.metrics.confidence import mean_interval
from nemo_evaluator.metrics.problems import Floats, Ints, by_problem

FEWEST_GROUPS, MOST_GROUPS = 2, 50
"""One group says nothing new, and with more than fifty a label is an identifier."""

Label = str | bool | None
"""None: the sample has no such label and belongs to no group."""


def breakdowns(
    labels: Mapping[str, Sequence[Label]], problem: npt.ArrayLike, reward: npt.ArrayLike
) -> dict[str, list[dict[str, Any]]]:
    """Rows by group for every field with 2 to 50 distinct labels; labels are parallel to the samples."""
    problems, rewards = np.asarray(problem, dtype=np.int64), np.asarray(reward, dtype=np.float64)
    is_scored = np.isfinite(rewards)
    found: dict[str, list[dict[str, Any]]] = {}
    for field, values in labels.items():
        groups, codes = _codes(values)
        if FEWEST_GROUPS <= len(groups) <= MOST_GROUPS:
            found[field] = _rows(groups, codes[is_scored], problems[is_scored], rewards[is_scored])
    return found


def _codes(values: Sequence[Label]) -> tuple[list[Label], Ints]:
    """Labels as numbers in order of appearance; -1 is no label."""
    number: dict[Label, int] = {}
    codes = (-1 if value is None else number.setdefault(value, len(number)) for value in values)
    array = np.fromiter(codes, dtype=np.int64, count=len(values))
    return list(number), array


def _rows(groups: list[Label], codes: Ints, problems: Ints, rewards: Floats) -> list[dict[str, Any]]:
    """In the order of the labels; a group none of whose samples has a score has no row."""
    order = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[order], np.arange(len(groups) + 1))
    members = (order[start:end] for start, end in itertools.pairwise(edges))
    rows = [
        _row(group, problems[rows], rewards[rows]) for group, rows in zip(groups, members, strict=True) if rows.size
    ]
    return sorted(rows, key=lambda row: str(row["group"]))


def _row(group: Label, problem: Ints, reward: Floats) -> dict[str, Any]:
    means = by_problem(problem, reward).means
    interval = mean_interval(means)
    bounds = {"ci_lower": interval.lower, "ci_upper": interval.upper}
    return {
        "group": group,
        "n": int(reward.size),
        "mean_reward": round(float(means.mean()), 4),
        **{name: None if bound is None else round(bound, 4) for name, bound in bounds.items()},
    }
