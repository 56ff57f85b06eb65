import numpy as np
import pytest

from nemo_evaluator.metrics.confidence import bootstrap_ci, clustered_se, mean_interval, standard_error, wilson


def coverage(n_problems: int, n_repeats: int, alpha: float, beta: float, experiments: int = 600) -> float:
    """Share of simulated runs whose interval holds the true score; problem difficulty is Beta(alpha, beta)."""
    generator = np.random.default_rng(20240501)
    truth = alpha / (alpha + beta)
    hits = 0
    for _ in range(experiments):
        difficulty = generator.beta(alpha, beta, n_problems)
        interval = mean_interval(generator.binomial(n_repeats, difficulty) / n_repeats)
        hits += interval.lower <= truth <= interval.upper
    return hits / experiments


@pytest.mark.parametrize(
    ("n_problems", "n_repeats", "alpha", "beta"),
    [(60, 1, 2, 2), (200, 1, 9, 0.5), (60, 1, 20, 0.2), (60, 8, 2, 2), (200, 8, 0.5, 0.2), (200, 16, 20, 0.2)],
    ids=["single", "single-near-1", "single-almost-1", "repeats", "repeats-bimodal", "repeats-almost-1"],
)
def test_nineteen_of_twenty_intervals_hold_the_true_score(
    n_problems: int, n_repeats: int, alpha: float, beta: float
) -> None:
    assert coverage(n_problems, n_repeats, alpha, beta) == pytest.approx(0.95, abs=0.035)


@pytest.mark.parametrize(
    ("successes", "n", "lower", "upper"),
    [(10, 10, 0.7225, 1.0), (0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (81, 263, 0.2553, 0.3662)],
)
def test_wilson_gives_the_published_bounds(successes: int, n: int, lower: float, upper: float) -> None:
    assert wilson(successes, n) == pytest.approx((lower, upper), abs=5e-5)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n", [1, 100])
def test_problems_that_are_all_alike_do_not_make_the_score_certain(value: float, n: int) -> None:
    interval = mean_interval([value] * n)
    assert interval.method == "wilson"
    assert interval.lower < interval.upper
    assert interval.lower <= value <= interval.upper


def test_alike_rewards_without_bounds_have_no_interval() -> None:
    interval = mean_interval([7.0, 7.0])
    assert (interval.lower, interval.upper, interval.method) == (None, None, "none")


def test_no_problems_have_no_interval() -> None:
    assert mean_interval([]).lower is None


@pytest.mark.parametrize("n", [50, 5_000])
def test_bootstrap_of_many_distinct_values_is_as_wide_as_theory_says(n: int) -> None:
    values = np.random.default_rng(7).lognormal(0.0, 1.0, n)
    lower, upper = bootstrap_ci(values)
    assert lower < values.mean() < upper
    assert upper - lower == pytest.approx(2 * 1.96 * standard_error(values), rel=0.1)


def test_bootstrap_is_the_same_in_every_run_and_order() -> None:
    values = np.random.default_rng(11).random(40)
    assert bootstrap_ci(values) == bootstrap_ci(values[::-1])
    assert bootstrap_ci(values) != bootstrap_ci(values, seed=1)


def test_a_wider_level_gives_a_wider_interval() -> None:
    values = np.random.default_rng(3).random(80)
    narrow, wide = mean_interval(values, level=0.8), mean_interval(values, level=0.99)
    assert wide.lower < narrow.lower < narrow.upper < wide.upper


def test_clusters_of_one_give_the_plain_standard_error() -> None:
    values = np.random.default_rng(5).random(30)
    assert clustered_se(values, np.arange(30)) == pytest.approx(standard_error(values))


def test_copies_of_a_problem_add_no_evidence() -> None:
    values = np.random.default_rng(5).random(30)
    assert clustered_se(np.repeat(values, 4), np.repeat(np.arange(30), 4)) == pytest.approx(standard_error(values))


def test_one_cluster_and_one_value_have_no_standard_error() -> None:
    assert clustered_se([0.0, 1.0], [3, 3]) is None
    assert clustered_se([], []) is None
    assert standard_error([0.5]) is None
