"""Two runs over the same problems: how far apart, how sure that is, and how many problems changed sides."""

from dataclasses import dataclass
from math import erfc, sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from nemo_evaluator.metrics.confidence import bootstrap_ci

FLIPS = 10_000
"""Random signs drawn for a p-value: it is then known to about 0.002 near 0.05."""


@dataclass(frozen=True, slots=True)
class Paired:
    """Of b minus a, with the problem as the unit."""

    difference: float
    lower: float | None
    """None when the data say nothing about the spread."""
    upper: float | None
    p_value: float
    method: str
    gained: int
    """Problems where b is better than a."""
    lost: int


def paired_difference(a: npt.ArrayLike, b: npt.ArrayLike, level: float = 0.95) -> Paired:
    """One number a problem on each side, in the same order; at least one problem."""
    before, after = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    steps = after - before
    gained, lost = int((steps > 0).sum()), int((steps < 0).sum())
    if _is_binary(before) and _is_binary(after):
        bounds = agresti_min(gained, lost, steps.size, level)
        return Paired(float(steps.mean()), *bounds, mcnemar_exact(gained, lost), "mcnemar", gained, lost)
    low, high = bootstrap_ci(steps, level)
    lower, upper = (low, high) if low < high else (None, None)
    return Paired(float(steps.mean()), lower, upper, sign_flips(steps), "paired bootstrap", gained, lost)


def mcnemar_exact(gained: int, lost: int) -> float:
    """Two-sided, from the problems that changed sides alone: each way is as likely if the runs are equally good
    (McNemar 1947, Psychometrika 12:153-157, in its exact binomial form)."""
    flips = gained + lost
    tail = ways = 1
    for k in range(min(gained, lost)):
        ways = ways * (flips - k) // (k + 1)
        tail += ways
    return min(1.0, float(2 * tail / 2**flips))


def agresti_min(gained: int, lost: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Interval of a difference of paired proportions that has a width even when nothing changed sides: half a problem
    is added to each cell of the table (Agresti & Min 2005, Statistics in Medicine 24:729-740)."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    total, up, down = n + 2, gained + 0.5, lost + 0.5
    centre = (up - down) / total
    half = z * sqrt((up + down) - (up - down) ** 2 / total) / total
    return max(-1.0, centre - half), min(1.0, centre + half)


def sign_flips(steps: npt.ArrayLike, draws: int = FLIPS, seed: int = 42) -> float:
    """Two-sided randomisation test of a mean difference of 0: runs that are equally good could have been swapped at
    each problem (Fisher 1935, The Design of Experiments, section 21)."""
    moved = np.asarray(steps, dtype=np.float64)
    moved = moved[moved != 0.0]
    if moved.size == 0:
        return 1.0
    generator = np.random.default_rng(seed)
    seen = abs(moved.sum())
    extreme = 0
    for _ in range(100):  # a hundredth at a time: all signs of a large run at once would be gigabytes
        signs = generator.integers(0, 2, size=(draws // 100, moved.size), dtype=np.int8) * 2 - 1
        extreme += int((np.abs(signs @ moved) >= seen * (1 - 1e-12)).sum())
    return (extreme + 1) / (draws + 1)


def unpaired_p(difference: float, stderr: float) -> float:
    """Of two means that are known by their standard errors alone."""
    if stderr == 0:
        return 1.0 if difference == 0 else 0.0
    return erfc(abs(difference) / stderr / sqrt(2))


def _is_binary(values: npt.NDArray[np.float64]) -> bool:
    return bool(np.all((values == 0.0) | (values == 1.0)))
