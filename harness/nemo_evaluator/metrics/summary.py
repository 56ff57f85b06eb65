"""The `scores` of a bundle, from the rewards of its samples."""

from typing import Any

import numpy as np
import numpy.typing as npt

from nemo_evaluator.metrics.confidence import bootstrap_ci, clustered_se, mean_interval, standard_error
from nemo_evaluator.metrics.pass_at_k import pass_at_k
from nemo_evaluator.metrics.problems import Floats, Problems, by_problem, require_distinct

DECIMALS = 4


def summarise(
    problem: npt.ArrayLike,
    repeat: npt.ArrayLike,
    reward: npt.ArrayLike,
    *,
    n_repeats: int = 1,
    clusters: npt.ArrayLike | None = None,
) -> dict[str, Any]:
    """One element a sample, in any order; a reward of NaN is a sample without a score, which is not a wrong answer.

    `clusters` numbers the groups (passages, documents) that problems belong to; those of a group are not independent.
    """
    problem_ids, rewards = np.asarray(problem, dtype=np.int64), np.asarray(reward, dtype=np.float64)
    require_distinct(problem_ids, np.asarray(repeat, dtype=np.int64))
    problems = by_problem(problem_ids, rewards)
    scored = rewards[np.isfinite(rewards)]
    mean_reward = _score(problems.means) | _clustered(problems, clusters)
    scores: dict[str, Any] = {"mean_reward": mean_reward}
    if scored.size and np.all((scored == 0.0) | (scored == 1.0)):
        scores |= {"pass@1": dict(mean_reward)} | _pass_at_n(problems, n_repeats)
    all_scored = scored.size == rewards.size
    scores["mean_reward_over_all"] = dict(mean_reward) if all_scored else _score(problems.means_over_all)
    scores["summary"] = _distribution(scored)
    scores["counts"] = _counts(problems)
    return scores


def _score(per_problem: Floats) -> dict[str, Any]:
    """Every problem weighs the same, however many of its repeats have a score."""
    if not per_problem.size:
        return _no_score("no sample has a score")
    interval = mean_interval(per_problem)
    is_resampled = interval.method == "bootstrap"
    resampled = (interval.lower, interval.upper) if is_resampled else bootstrap_ci(per_problem)
    return {
        "value": _rounded(float(per_problem.mean())),
        "stderr": _rounded(standard_error(per_problem)),
        "ci_lower": _rounded(interval.lower),
        "ci_upper": _rounded(interval.upper),
        "bootstrap_ci_lower": _rounded(resampled[0]),
        "bootstrap_ci_upper": _rounded(resampled[1]),
        "n": int(per_problem.size),
        "method": interval.method,
    }


def _no_score(reason: str) -> dict[str, Any]:
    absent = ("value", "stderr", "ci_lower", "ci_upper", "bootstrap_ci_lower", "bootstrap_ci_upper")
    return dict.fromkeys(absent) | {"n": 0, "method": "none", "reason": reason}


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, DECIMALS)


def _clustered(problems: Problems, clusters: npt.ArrayLike | None) -> dict[str, Any]:
    """The standard error over groups of problems, where the caller knows groups and there are two or more of them."""
    if clusters is None:
        return {}
    cluster_of_problem = np.asarray(clusters)[problems.first_sample][problems.has_score]
    error = clustered_se(problems.means, cluster_of_problem)
    return {} if error is None else {"clustered_stderr": _rounded(error)}


def _pass_at_n(problems: Problems, n_repeats: int) -> dict[str, Any]:
    if n_repeats == 1:
        return {}
    estimate = pass_at_k(problems.scored, problems.reward.astype(np.int64), n_repeats)
    score = _no_score(estimate.reason) if estimate.reason else _score(estimate.per_problem)
    return {f"pass@{n_repeats}": score | {"left_out": estimate.left_out}}


def _distribution(scored: Floats) -> dict[str, Any]:
    """Of single rewards, not of problem means."""
    if not scored.size:
        return {"mean": None, "std": None, "min": None, "max": None, "median": None, "n": 0}
    spread = float(scored.std(ddof=1)) if scored.size > 1 else None
    figures = {"mean": scored.mean(), "min": scored.min(), "max": scored.max(), "median": np.median(scored)}
    return {name: _rounded(float(figure)) for name, figure in figures.items()} | {
        "std": _rounded(spread),
        "n": int(scored.size),
    }


def _counts(problems: Problems) -> dict[str, int]:
    samples, scored = int(problems.samples.sum()), int(problems.scored.sum())
    return {
        "samples": samples,
        "scored": scored,
        "unscored": samples - scored,
        "problems": int(problems.samples.size),
        "problems_scored": int(np.count_nonzero(problems.has_score)),
    }
