"""Rewards of samples folded into one row a problem: problems are what was sampled, repeats of one are relatives."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nemo_evaluator.errors import UsageError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Problems:
    """Columns by problem, in the order of the problem's number."""

    samples: Ints
    scored: Ints
    """Samples with a reward; a sample that ended in an error has none."""
    reward: Floats
    """Sum over the scored samples."""
    first_sample: Ints
    """Row of the problem's first sample, for whatever is known by sample and is the same for all of a problem."""

    @property
    def has_score(self) -> npt.NDArray[np.bool_]:
        return self.scored > 0

    @property
    def means(self) -> Floats:
        """Mean reward of each problem that has a score."""
        return self.reward[self.has_score] / self.scored[self.has_score]

    @property
    def means_over_all(self) -> Floats:
        """Mean reward of every problem, a sample without a reward counted as 0."""
        return self.reward / self.samples


def by_problem(problem: Ints, reward: Floats) -> Problems:
    """Fold rows of any order; a reward that is NaN or infinite is no score."""
    _, first_sample, row = np.unique(problem, return_index=True, return_inverse=True)
    is_scored = np.isfinite(reward)
    size = first_sample.size
    return Problems(
        samples=np.bincount(row, minlength=size),
        scored=np.bincount(row[is_scored], minlength=size),
        reward=np.bincount(row[is_scored], weights=reward[is_scored], minlength=size).astype(np.float64),
        first_sample=first_sample,
    )


def require_distinct(problem: Ints, repeat: Ints) -> None:
    """One reward a (problem, repeat): a sample that occurs twice would count twice."""
    order = np.lexsort((repeat, problem))
    p, r = problem[order], repeat[order]
    twice = np.flatnonzero((p[1:] == p[:-1]) & (r[1:] == r[:-1]))
    if twice.size:
        raise UsageError(
            f"problem {p[twice[0]]} repeat {r[twice[0]]} has more than one reward ({twice.size} such rows); "
            "each sample counts once: remove the duplicate rows"
        )
