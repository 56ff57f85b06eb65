import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_evaluator.errors import UsageError
from nemo_evaluator.metrics.summary import summarise

NAN = math.nan
SCORE_KEYS = {"value", "stderr", "ci_lower", "ci_upper", "bootstrap_ci_lower", "bootstrap_ci_upper", "n", "method"}


def test_binary_rewards_have_pass_at_1_beside_the_mean() -> None:
    scores = summarise([0, 1, 2, 3], [0, 0, 0, 0], [1, 0, 1, 1])
    assert scores["pass@1"] == scores["mean_reward"] == scores["mean_reward_over_all"]
    assert set(scores["pass@1"]) == SCORE_KEYS
    assert (scores["pass@1"]["value"], scores["pass@1"]["n"], scores["pass@1"]["method"]) == (0.75, 4, "wilson")


def test_one_fractional_reward_leaves_the_mean_in_place() -> None:
    scores = summarise([0, 1, 2], [0, 0, 0], [1, 0.5, 0])
    assert scores["mean_reward"]["value"] == 0.5
    assert "pass@1" not in scores


def test_repeats_have_pass_at_n() -> None:
    scores = summarise([0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 0], n_repeats=2)
    assert scores["pass@1"]["value"] == 0.25
    assert scores["pass@2"]["value"] == 0.5
    assert scores["pass@2"]["left_out"] == 0


def test_errors_are_not_wrong_answers_and_both_figures_are_given() -> None:
    rewards = [1.0] * 80 + [0.0] * 10 + [NAN] * 10
    scores = summarise(range(100), [0] * 100, rewards)
    assert scores["mean_reward"]["value"] == round(80 / 90, 4)
    assert scores["mean_reward_over_all"]["value"] == 0.8
    assert scores["counts"] == {"samples": 100, "scored": 90, "unscored": 10, "problems": 100, "problems_scored": 90}


def test_an_errored_repeat_leaves_its_problem_out_of_pass_at_n_only() -> None:
    scores = summarise([0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, NAN], n_repeats=2)
    assert (scores["pass@2"]["value"], scores["pass@2"]["left_out"]) == (1.0, 1)
    assert scores["pass@1"]["value"] == 0.25


def test_pass_at_n_without_a_complete_problem_is_no_number() -> None:
    score = summarise([0, 0], [0, 1], [1, NAN], n_repeats=2)["pass@2"]
    assert score["value"] is None
    assert "no problem has that many" in score["reason"]


def test_samples_that_all_failed_have_no_score_and_count_as_nothing_right_over_all() -> None:
    scores = summarise([0, 1], [0, 0], [NAN, math.inf])
    assert scores["mean_reward"]["value"] is None
    assert scores["mean_reward"]["reason"] == "no sample has a score"
    assert scores["mean_reward_over_all"]["value"] == 0.0
    json.dumps(scores, allow_nan=False)


def test_an_empty_run_has_no_score() -> None:
    scores = summarise([], [], [])
    assert scores["mean_reward"]["value"] is None
    assert scores["mean_reward_over_all"]["value"] is None
    json.dumps(scores, allow_nan=False)


def test_a_sample_that_occurs_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="problem 4 repeat 1 has more than one reward"):
        summarise([4, 0, 4], [1, 0, 1], [1, 0, 1], n_repeats=2)


def test_repeats_of_one_problem_do_not_shrink_the_standard_error() -> None:
    problem, repeat = np.divmod(np.arange(40), 4)
    once = summarise(range(10), [0] * 10, [1, 0] * 5)
    copies = summarise(problem, repeat, np.repeat([1, 0] * 5, 4), n_repeats=4)
    assert copies["mean_reward"]["stderr"] == once["mean_reward"]["stderr"]


def test_problems_on_one_passage_give_a_larger_clustered_error() -> None:
    rewards = [1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0]
    score = summarise(range(12), [0] * 12, rewards, clusters=np.arange(12) // 3)["mean_reward"]
    assert score["clustered_stderr"] > 1.5 * score["stderr"]


def test_one_cluster_gives_no_clustered_error() -> None:
    assert "clustered_stderr" not in summarise([0, 1], [0, 0], [1, 0], clusters=[5, 5])["mean_reward"]


def test_the_distribution_of_single_rewards_is_summed_up() -> None:
    assert summarise([0, 1, 2], [0, 0, 0], [0.0, 0.5, 1.0])["summary"] == {
        "mean": 0.5,
        "std": 0.5,
        "min": 0.0,
        "max": 1.0,
        "median": 0.5,
        "n": 3,
    }


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0.0, 1.0, 0.3, NAN])), max_size=40), st.randoms())
def test_the_order_of_samples_changes_nothing(rows: list[tuple[int, float]], random: object) -> None:
    samples = [(problem, repeat, reward) for repeat, (problem, reward) in enumerate(rows)]
    shuffled = list(samples)
    random.shuffle(shuffled)
    columns = [list(zip(*order, strict=True)) or [[], [], []] for order in (samples, shuffled)]
    assert summarise(*columns[0], n_repeats=3) == summarise(*columns[1], n_repeats=3)
