"""`nemo-evaluator ls`."""

import json


def test_tasks_are_listed_by_harness(evaluator):
    lines = evaluator("ls").stdout.splitlines()
    assert lines[:3] == ["toy-harness: ", "  * sums", "  * talk"]
    assert "nemo-evaluator: " in lines
    assert "  * tiny_arithmetic" in lines


def test_json_tells_endpoint_types_and_default_subset(evaluator):
    rows = {(row["harness"], row["task"]): row for row in json.loads(evaluator("ls", "--json").stdout)}
    talk = rows["toy-harness", "talk"]
    assert (talk["endpoint_types"], talk["subset"], talk["required_capabilities"]) == (
        ["chat"],
        "talk_str",
        ["logprobs"],
    )
    assert rows["toy-harness", "sums"]["defaults"]["extra"] == {"shots": 3, "style": "plain"}
    assert rows["nemo-evaluator", "gsm8k"]["endpoint_types"] == ["chat", "completions"]


def test_a_broken_framework_file_is_named(evaluator, tmp_path):
    package = tmp_path / "more/core_evals/broken"
    package.mkdir(parents=True)
    (package / "framework.yml").write_text("framework: {name: broken}\n")
    done = evaluator("ls", code=2, PYTHONPATH=str(tmp_path / "more"))
    assert "core_evals/broken/framework.yml is no framework.yml" in done.stderr
    assert done.stderr.count("\n") == 1
