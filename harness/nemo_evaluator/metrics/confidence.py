"""How sure a mean is: standard errors and intervals, with the problem as the unit that was sampled."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

MAX_DISTINCT = 64
"""Above this many distinct values the bootstrap draws from quantile bins instead of from values."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds are None when the data say nothing about the spread."""

    lower: float | None
    upper: float | None
    method: str


def mean_interval(per_problem: npt.ArrayLike, level: float = 0.95) -> Interval:
    """The interval of a headline score, from one number a problem.

    Wilson where each problem is simply right or wrong, else a bootstrap over problems. When all problems are alike a
    resampled interval has no width, yet the score is not certain: for numbers in [0, 1] Wilson's interval over the
    number of problems takes its place.
    """
    values = np.asarray(per_problem, dtype=np.float64)
    if values.size == 0:
        return Interval(None, None, "none")
    if not np.all((values == 0.0) | (values == 1.0)):
        lower, upper = bootstrap_ci(values, level)
        if lower < upper:
            return Interval(lower, upper, "bootstrap")
    if values.min() < 0.0 or values.max() > 1.0:
        return Interval(None, None, "none")
    return Interval(*wilson(float(values.sum()), values.size, level), "wilson")


def wilson(successes: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Score interval of a proportion (Wilson 1927, JASA 22:209-212): holds for small n and for proportions near 0 or 1.

    `successes` may be fractional: the sum of rewards in [0, 1].
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    p = successes / n
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * float(np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)))
    return max(0.0, centre - half), min(1.0, centre + half)


def bootstrap_ci(
    values: npt.ArrayLike, level: float = 0.95, resamples: int = 2000, seed: int = 42
) -> tuple[float, float]:
    """Percentile bootstrap of the mean (Efron 1979, Annals of Statistics 7:1-26).

    Resampling n values with replacement is a multinomial draw of how often each distinct value comes up, so the cost
    grows with the number of distinct values and not with n.
    """
    array = np.asarray(values, dtype=np.float64)
    n = array.size
    means, variances, counts = _bins(array)
    if means.size == 1:
        return float(means[0]), float(means[0])
    generator = np.random.default_rng(seed)
    draws = generator.multinomial(n, counts / n, size=resamples).astype(np.float64)
    sums = draws @ means
    if variances.any():
        sums += generator.standard_normal(resamples) * np.sqrt(draws @ variances)
    lower, upper = np.quantile(sums / n, [(1 - level) / 2, (1 + level) / 2])
    return float(lower), float(upper)


def _bins(values: Values) -> tuple[Values, Values, npt.NDArray[np.int64]]:
    """Mean, variance and size of each group of values to draw from: equal values, or neighbours if there are too many.

    The spread inside a bin is given back as a normal term with the bin's variance, so binning does not narrow the
    interval.
    """
    distinct, counts = np.unique(values, return_counts=True)
    if distinct.size <= MAX_DISTINCT:
        return distinct, np.zeros(distinct.size), counts
    starts = np.linspace(0, values.size, MAX_DISTINCT, endpoint=False).astype(np.int64)
    sizes = np.diff(starts, append=values.size)
    ordered = np.sort(values)
    means = np.add.reduceat(ordered, starts) / sizes
    variances = np.add.reduceat(np.square(ordered - np.repeat(means, sizes)), starts) / sizes
    return means, variances, sizes


def standard_error(values: npt.ArrayLike) -> float | None:
    """Of the mean of independent values; one value says nothing about the spread."""
    array = np.asarray(values, dtype=np.float64)
    return float(array.std(ddof=1) / np.sqrt(array.size)) if array.size > 1 else None


def clustered_se(values: npt.ArrayLike, clusters: npt.ArrayLike) -> float | None:
    """Of the mean of values that come in groups of relatives (questions on one passage, repeats of one problem).

    sqrt(G / ((G-1) N²) Σ_g e_g²) with e_g the sum of residuals of cluster g: Miller 2024, "Adding Error Bars to Evals",
    arXiv:2411.00640, section 2.2.
    """
    array = np.asarray(values, dtype=np.float64)
    cluster_of_value = np.unique(np.asarray(clusters), return_inverse=True)[1]
    sums = np.bincount(cluster_of_value, weights=array - array.mean()) if array.size else np.empty(0)
    if sums.size < 2:
        return None
    return float(np.sqrt(sums.size / (sums.size - 1) * np.square(sums).sum()) / array.size)
