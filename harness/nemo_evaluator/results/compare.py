"""Task by task, how two runs of direct mode differ: over the same questions where both kept them, else by their
harness's own scores."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import hypot
from statistics import NormalDist, fmean

from nemo_evaluator.metrics.confidence import Interval, mean_interval
from nemo_evaluator.metrics.paired import paired_difference, unpaired_p
from nemo_evaluator.results.direct_run import OK, DirectRun, ReportedScore
from nemo_evaluator.results.samples import OWN_METRIC, Item, Sampled, read_samples

Z = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Side:
    value: float
    interval: Interval
    errors: int
    """Requests that failed; their questions are in no pair."""
    unmatched: int
    """Questions that the other run does not have at all."""


@dataclass(frozen=True, slots=True)
class Comparison:
    task: str
    part: str
    metric: str
    method: str
    n: int | None
    """Pairs; None where the harness's scores were taken."""
    a: Side
    b: Side
    difference: float
    """Of b minus a."""
    lower: float | None
    upper: float | None
    p_value: float | None
    gained: int | None
    """Questions where b is better."""
    lost: int | None


def compare(a: DirectRun, b: DirectRun) -> Iterator[Comparison]:
    """Of every task that both have finished."""
    for task in a.tasks:
        if a.states.get(task) == b.states.get(task) == OK:
            yield from _compare_task(a, b, task)


def _compare_task(a: DirectRun, b: DirectRun, task: str) -> Iterator[Comparison]:
    mine, theirs = read_samples(a.folder / task, task), read_samples(b.folder / task, task)
    paired = [key for key in mine if key in theirs]
    compared = set()
    for part, metric in paired:
        if found := _paired(task, part, metric, mine[part, metric], theirs[part, metric]):
            compared.add((part, metric))
            yield found
    if any(metric == OWN_METRIC for _, metric in compared):
        return  # its other scores say the same in other words
    reported = {(score.part, score.metric): score for score in b.reported(task)}
    for score in a.reported(task):
        key = score.part, score.metric
        if key not in compared and key in reported:
            yield _unpaired(task, score, reported[key])


def _paired(task: str, part: str, metric: str, a: Sampled, b: Sampled) -> Comparison | None:
    """None if not one question has an answer in both."""
    pairs = list(_pairs(a, b))
    if not pairs:
        return None
    before, after = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    found = paired_difference(before, after)
    return Comparison(
        task,
        part,
        metric,
        found.method,
        len(pairs),
        Side(fmean(before), mean_interval(before), len(a.errors), _unmatched(a, b)),
        Side(fmean(after), mean_interval(after), len(b.errors), _unmatched(b, a)),
        found.difference,
        found.lower,
        found.upper,
        found.p_value,
        found.gained,
        found.lost,
    )


def _pairs(a: Sampled, b: Sampled) -> Iterator[tuple[float, float]]:
    """A question counts once: repeats that both have answered are averaged."""
    for item, before in a.values.items():
        after = b.values.get(item, {})
        if both := before.keys() & after.keys():
            yield fmean(before[repeat] for repeat in both), fmean(after[repeat] for repeat in both)


def _unmatched(a: Sampled, b: Sampled) -> int:
    known = _items(b)
    return sum(item not in known for item in _items(a))


def _items(sampled: Sampled) -> set[Item]:
    return sampled.values.keys() | {item for item, _ in sampled.errors}


def _unpaired(task: str, a: ReportedScore, b: ReportedScore) -> Comparison:
    difference = b.value - a.value
    stderr = None if a.stderr is None or b.stderr is None else hypot(a.stderr, b.stderr)
    return Comparison(
        task,
        a.part,
        a.metric,
        "unpaired",
        None,
        Side(a.value, _normal(a.value, a.stderr), 0, 0),
        Side(b.value, _normal(b.value, b.stderr), 0, 0),
        difference,
        None if stderr is None else difference - Z * stderr,
        None if stderr is None else difference + Z * stderr,
        None if stderr is None else unpaired_p(difference, stderr),
        None,
        None,
    )


def _normal(value: float, stderr: float | None) -> Interval:
    if stderr is None:
        return Interval(None, None, "none")
    return Interval(value - Z * stderr, value + Z * stderr, "normal")
