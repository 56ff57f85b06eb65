from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_evaluator.metrics.paired import agresti_min, mcnemar_exact, paired_difference, sign_flips, unpaired_p


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (1, 0), (9, 1), (25, 8), (3, 3), (0, 12), (640, 500)])
def test_mcnemar_is_the_exact_binomial_test_of_the_flips(gained, lost):
    """Summed over every outcome that is no likelier than the one seen."""
    flips = gained + lost
    unlikely = [comb(flips, k) for k in range(flips + 1) if comb(flips, k) <= comb(flips, gained)]
    assert mcnemar_exact(gained, lost) == pytest.approx(float(Fraction(sum(unlikely), 2**flips)), rel=1e-9)


def test_pairing_finds_what_independent_samples_hide():
    """9 gained, 0 lost of 100: a difference of 0.09 that unpaired standard errors call chance."""
    a = np.array([1.0] * 50 + [0.0] * 50)
    b = np.array([1.0] * 59 + [0.0] * 41)
    found = paired_difference(a, b)
    assert (found.gained, found.lost, found.method) == (9, 0, "mcnemar")
    assert found.p_value < 0.005
    assert unpaired_p(found.difference, np.hypot(a.std() / 10, b.std() / 10)) > 0.1
    assert found.lower is not None and found.upper is not None
    assert 0 < found.lower < found.difference < found.upper


def test_runs_without_a_flip_still_leave_doubt():
    found = paired_difference([1, 0, 1, 1], [1, 0, 1, 1])
    assert (found.difference, found.p_value) == (0, 1)
    assert found.lower is not None and found.upper is not None
    assert found.lower < 0 < found.upper


def test_graded_scores_are_bootstrapped():
    generator = np.random.default_rng(1)
    a = generator.uniform(size=200)
    found = paired_difference(a, np.clip(a + generator.normal(0.05, 0.05, 200), 0, 1))
    assert found.method == "paired bootstrap"
    assert found.lower is not None and 0.02 < found.lower < found.difference
    assert found.p_value < 0.001


def test_a_constant_difference_has_no_interval():
    found = paired_difference([0.25, 0.5], [0.5, 0.75])
    assert (found.lower, found.upper) == (None, None)


def test_small_samples_are_never_significant_by_sign_flips():
    assert sign_flips([0.1, 0.2, 0.3]) > 0.2


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_swapping_the_runs_mirrors_the_interval(gained, lost, rest):
    n = gained + lost + rest
    if n:
        lower, upper = agresti_min(gained, lost, n)
        mirrored = agresti_min(lost, gained, n)
        assert (lower, upper) == pytest.approx((-mirrored[1], -mirrored[0]))
        assert -1 <= lower <= upper <= 1


@pytest.mark.parametrize("share", [0.03, 0.1])
def test_equal_models_whose_answers_flip_under_load_seldom_raise_an_alarm(share):
    """The same model twice, some answers different each time: below alpha of a thousand trials."""
    generator = np.random.default_rng(7)
    alarms = 0
    for _ in range(1000):
        a = generator.integers(0, 2, size=300).astype(float)
        b = np.where(generator.uniform(size=300) < share, 1 - a, a)
        alarms += mcnemar_exact(int((b > a).sum()), int((b < a).sum())) < 0.05
    assert alarms < 50
