import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_evaluator.engine.plan import plan_attempts
from nemo_evaluator.errors import UsageError


def keys(plan):
    return [(attempt.problem_idx, attempt.repeat) for attempt in plan]


def test_repeats_of_a_problem_are_asked_together():
    assert keys(plan_attempts(2, 2)) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_max_problems_takes_the_first_of_the_dataset():
    assert plan_attempts(10, max_problems=3).problems == (0, 1, 2)


def test_max_problems_above_the_size_takes_all():
    assert len(plan_attempts(3, max_problems=100)) == 3


def test_shuffle_is_the_same_every_time_and_keeps_dataset_indices():
    first, second = (plan_attempts(100, shuffle_seed=7, max_problems=10) for _ in range(2))
    assert first.problems == second.problems
    assert first.problems != tuple(range(10))


def test_problem_range_is_a_slice_of_the_limited_problems():
    assert plan_attempts(10, max_problems=6, problem_range=(2, 5)).problems == (2, 3, 4)


def test_problem_range_wins_over_the_shard():
    assert plan_attempts(10, problem_range=(0, 2), shard_info=(1, 2)).problems == (0, 1)


@given(size=st.integers(0, 50), shards=st.integers(1, 12), seed=st.none() | st.integers(0, 3))
def test_shards_share_the_problems_without_gap_or_overlap(size, shards, seed):
    """7.5 item 69: also of a shuffled dataset, so that no shard gets all the long problems of a sorted one."""
    parts = [plan_attempts(size, shard_info=(shard, shards), shuffle_seed=seed).problems for shard in range(shards)]
    assert sorted(sum(parts, ())) == list(range(size))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@given(size=st.integers(0, 30), repeats=st.integers(1, 4), seed=st.none() | st.integers(0, 3))
def test_problem_order_is_sorted_whatever_was_asked_first(size, repeats, seed):
    plan = plan_attempts(size, repeats, shuffle_seed=seed)
    ordered = [(attempt.problem_idx, attempt.repeat) for attempt in plan.in_problem_order()]
    assert ordered == sorted(keys(plan))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"n_repeats": 0}, "n_repeats is 0"),
        ({"max_problems": 0}, "max_problems is 0"),
        ({"problem_range": (3, 2)}, "3..2"),
        ({"problem_range": (0, 11)}, "0..11"),
        ({"shard_info": (2, 2)}, "(2, 2)"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused_by_name(arguments, named):
    with pytest.raises(UsageError) as refused:
        plan_attempts(10, **arguments)
    assert named in str(refused.value)
