import math

from nemo_evaluator.metrics.breakdown import breakdowns


def test_groups_have_their_own_mean_and_interval() -> None:
    rows = breakdowns({"category": ["b", "a", "a", "b"]}, [0, 1, 2, 3], [1, 0, 1, 1])["category"]
    assert [(row["group"], row["n"], row["mean_reward"]) for row in rows] == [("a", 2, 0.5), ("b", 2, 1.0)]
    assert all(row["ci_lower"] < row["ci_upper"] for row in rows)


def test_labels_with_one_or_too_many_values_are_no_breakdown() -> None:
    labels = {"same": ["x"] * 51, "id": [str(number) for number in range(51)]}
    assert breakdowns(labels, range(51), [1.0] * 51) == {}


def test_fifty_groups_are_a_breakdown() -> None:
    assert len(breakdowns({"id": [str(n) for n in range(50)]}, range(50), [1.0] * 50)["id"]) == 50


def test_samples_without_a_label_or_a_score_belong_to_no_group() -> None:
    rows = breakdowns({"hit": [True, False, None, True]}, range(4), [1, 0, 1, math.nan])["hit"]
    assert [(row["group"], row["n"]) for row in rows] == [(False, 1), (True, 1)]


def test_a_group_without_a_score_has_no_row() -> None:
    rows = breakdowns({"kind": ["x", "y"]}, [0, 1], [1.0, math.nan])["kind"]
    assert [row["group"] for row in rows] == ["x"]


def test_repeats_of_a_problem_weigh_as_one_problem() -> None:
    rows = breakdowns({"kind": ["x", "x", "x", "y"]}, [0, 0, 1, 2], [1, 1, 0, 1])["kind"]
    assert rows[0]["mean_reward"] == 0.5
    assert rows[0]["n"] == 3
