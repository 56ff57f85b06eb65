import yaml

from nemotron.scores import score_lines


def results(task, **scores):
    metrics = {name: {"scores": {name: {"value": value, "stats": stats}}} for name, (value, stats) in scores.items()}
    return {"results": {"tasks": {task: {"metrics": metrics}}, "groups": {}}}


def test_scores_of_all_tasks_are_one_table(tmp_path):
    for task, scores in (
        ("gsm8k", {"exact_match": (0.5, {"stderr": 0.0138, "count": 1319})}),
        ("hellaswag", {"acc": (0.25, {}), "acc_norm": (0.3, None)}),
    ):
        (tmp_path / task).mkdir()
        (tmp_path / task / "results.yml").write_text(yaml.safe_dump(results(task, **scores)))
    assert score_lines(tmp_path, ["gsm8k", "hellaswag"]) == [
        "task       metric       score   stderr  samples",
        "gsm8k      exact_match  0.5000  0.0138  1,319",
        "hellaswag  acc          0.2500",
        "hellaswag  acc_norm     0.3000",
    ]


def test_a_task_without_results_has_no_line(tmp_path):
    (tmp_path / "failed").mkdir()
    assert score_lines(tmp_path, ["failed", "never started"]) == []
