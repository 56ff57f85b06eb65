from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_evaluator.metrics.pass_at_k import pass_at_k


def brute_force(n: int, c: int, k: int) -> float:
    draws = list(combinations([1] * c + [0] * (n - c), k))
    return sum(any(draw) for draw in draws) / len(draws)


@pytest.mark.parametrize("n", range(1, 9))
def test_equals_enumeration_of_all_draws(n: int) -> None:
    for c in range(n + 1):
        for k in range(1, n + 1):
            assert pass_at_k([n], [c], k).value == pytest.approx(brute_force(n, c, k), abs=1e-12)


def test_k_above_n_gives_no_number_but_a_reason() -> None:
    estimate = pass_at_k([2], [0], k=5)
    assert estimate.value is None
    assert estimate.reason == "pass@5 needs 5 scored samples of a problem; no problem has that many"


def test_problems_with_too_few_samples_are_left_out_of_the_mean() -> None:
    estimate = pass_at_k([4, 4, 3], [4, 0, 0], k=4)
    assert (estimate.value, estimate.left_out, estimate.reason) == (0.5, 1, None)


def test_n_is_the_number_of_samples_and_not_of_problems() -> None:
    one_of_two_hundred_right = pass_at_k(np.ones(200), [1] + [0] * 199, k=1)
    assert one_of_two_hundred_right.value == pytest.approx(1 / 200)
    assert pass_at_k(np.ones(200), np.ones(200), k=10).value is None


def test_large_counts_neither_overflow_nor_lose_precision() -> None:
    assert pass_at_k([10_000], [1], k=100).value == pytest.approx(0.01)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 0)])
def test_impossible_counts_are_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match=r"more successes than samples|k is 0"):
        pass_at_k([n], [c], k)


@given(
    st.integers(1, 64).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n), min_size=1, max_size=20)))
)
def test_is_the_mean_at_one_and_rises_with_k_to_at_most_one(case: tuple[int, list[int]]) -> None:
    n, correct = case
    values = [pass_at_k([n] * len(correct), correct, k).value for k in range(1, n + 1)]
    assert values[0] == pytest.approx(np.mean(correct) / n)
    assert all(low <= high + 1e-12 for low, high in pairwise(values))
    assert values[-1] <= 1.0
