"""pass@k: the chance that at least one of k samples of a problem is right.

Chen et al. 2021, "Evaluating Large Language Models Trained on Code", arXiv:2107.03374, equation 1.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class PassAtK:
    """The mean of the problems that have an estimate; the others lack samples and are left out, not counted as 0."""

    k: int
    per_problem: npt.NDArray[np.float64]
    """Only of the problems with at least k samples."""
    left_out: int
    """Problems with fewer than k samples."""

    @property
    def value(self) -> float | None:
        return float(self.per_problem.mean()) if self.per_problem.size else None

    @property
    def reason(self) -> str | None:
        """Why there is no value."""
        if self.per_problem.size:
            return None
        return f"pass@{self.k} needs {self.k} scored samples of a problem; no problem has that many"


def pass_at_k(totals: npt.ArrayLike, successes: npt.ArrayLike, k: int) -> PassAtK:
    """Totals and successes are counts by problem; totals may differ, because an errored repeat has no reward."""
    n, c = np.asarray(totals, dtype=np.int64), np.asarray(successes, dtype=np.int64)
    if k < 1:
        raise ValueError(f"k is {k}; pass@k is defined for k of 1 and more")
    if np.any(c < 0) or np.any(c > n):
        raise ValueError("a problem has more successes than samples, or a negative number of them")
    has_estimate = n >= k
    estimates = 1.0 - _chance_of_no_success(n[has_estimate], c[has_estimate], k)
    return PassAtK(k, estimates, left_out=int(np.count_nonzero(~has_estimate)))


def _chance_of_no_success(n: npt.NDArray[np.int64], c: npt.NDArray[np.int64], k: int) -> npt.NDArray[np.float64]:
    """C(n-c, k) / C(n, k) as a product of k factors, which neither overflows nor cancels."""
    chance = np.ones(n.shape)
    for drawn in range(k):
        chance *= np.maximum(n - c - drawn, 0) / (n - drawn)
    return chance
