"""Which problems are asked, how often, in which order. Pure."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from nemo_evaluator.errors import UsageError


class Attempt(NamedTuple):
    """One repeat of one problem; `ordinal` is its place in the order of asking."""

    ordinal: int
    problem_idx: int
    repeat: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The attempts of a run, problem by problem, so that repeats of a prompt meet a warm prefix cache on the server."""

    problems: tuple[int, ...]
    """Dataset indices in the order of asking."""
    n_repeats: int
    dataset_size: int
    problem_range: tuple[int, int]
    """The slice of the (shuffled, limited) problem list that this run asks."""

    def __len__(self) -> int:
        return len(self.problems) * self.n_repeats

    def __iter__(self) -> Iterator[Attempt]:
        for ordinal in range(len(self)):
            yield self[ordinal]

    def __getitem__(self, ordinal: int) -> Attempt:
        position, repeat = divmod(ordinal, self.n_repeats)
        return Attempt(ordinal, self.problems[position], repeat)

    def in_problem_order(self) -> Iterator[Attempt]:
        for position in sorted(range(len(self.problems)), key=self.problems.__getitem__):
            for repeat in range(self.n_repeats):
                yield self[position * self.n_repeats + repeat]


class Ordinals:
    """From a (problem_idx, repeat) back to its ordinal."""

    def __init__(self, plan: Plan) -> None:
        self._first = {problem: position * plan.n_repeats for position, problem in enumerate(plan.problems)}
        self._n_repeats = plan.n_repeats

    def of(self, problem_idx: int, repeat: int) -> int | None:
        """None for an attempt that is not in the plan."""
        first = self._first.get(problem_idx)
        return None if first is None or repeat >= self._n_repeats else first + repeat


def plan_attempts(
    size: int,
    n_repeats: int = 1,
    max_problems: int | None = None,
    problem_range: tuple[int, int] | None = None,
    shard_info: tuple[int, int] | None = None,
    shuffle_seed: int | None = None,
) -> Plan:
    """Limit, then slice: `max_problems` takes the first N of the dataset (or of its shuffled order), and
    `problem_range`, or else the shard, takes its part of those. Raises UsageError for a limit that makes no sense."""
    _at_least_one("n_repeats", n_repeats)
    if max_problems is not None:
        _at_least_one("max_problems", max_problems)
    indices = list(range(size))
    if shuffle_seed is not None:
        random.Random(shuffle_seed).shuffle(indices)
    indices = indices[:max_problems]
    start, end = problem_range or _shard_range(len(indices), shard_info) or (0, len(indices))
    if not 0 <= start <= end <= len(indices):
        raise UsageError(
            f"problem_range {start}..{end} is outside the {len(indices)} problems of this run: "
            f"give two numbers with 0 <= start <= end <= {len(indices)}."
        )
    return Plan(tuple(indices[start:end]), n_repeats, size, (start, end))


def _at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise UsageError(f"{name} is {value}: give a number of at least 1.")


def _shard_range(total: int, shard_info: tuple[int, int] | None) -> tuple[int, int] | None:
    """Contiguous shares; the first `total % shards` of them hold one problem more."""
    if shard_info is None:
        return None
    shard, shards = shard_info
    if shards < 1 or not 0 <= shard < shards:
        raise UsageError(f"shard_info {shard_info} is not (index, total) with 0 <= index < total.")
    base, extra = divmod(total, shards)
    start = shard * base + min(shard, extra)
    return start, start + base + (shard < extra)
