import json

import pytest


def test_list_names_every_bundled_benchmark(nel):
    shown = nel("list").stdout
    assert [line.split()[0] for line in shown.splitlines()] == [
        "gsm8k",
        "mgsm",
        "mmlu",
        "tiny_arithmetic",
        "tiny_choice",
    ]


def test_list_is_there_for_programs(nel):
    """7.7 item 89."""
    found = json.loads(nel("list", "--json").stdout)
    assert {"name", "summary", "source", "dataset", "size"} == set(found[0])


def test_list_filters_by_source(nel):
    assert "gsm8k" in nel("list", "--source", "builtin").stdout
    assert "builtin" in nel("list", "--source", "nowhere", code=2).stderr


def test_validate_checks_the_scorer_without_a_model(nel):
    shown = nel("validate", "-b", "tiny_choice", "-s", "60").stdout
    assert "scorer: right on the gold and empty answers of 60 problems" in shown


def test_validate_shows_a_line_for_each_sample(nel, quick, server):
    server.control(answer="Answer: 1")
    shown = nel("validate", "--benchmark", *quick[1:], "-s", "3").stdout
    assert len([line for line in shown.splitlines() if line.startswith(("[PASS] p", "[FAIL] p"))]) == 3
    assert "/3 correct" in shown


@pytest.mark.parametrize("status", [401, 500])
def test_validate_fails_when_requests_fail(nel, quick, server, status):
    """It used to exit with 0 when every request was answered with 401."""
    server.control(behaviours=[{"status": status}])
    done = nel("validate", *quick, "-s", "1", code=1)
    assert str(status) in done.stdout + done.stderr


def test_validate_fails_when_the_scorer_refuses_the_right_answer(nel):
    (nel.folder / "broken.py").write_text(
        "from nemo_evaluator.environments import benchmark, scorer\n"
        "@benchmark('broken', dataset=lambda: [{'q': 'x', 'target': 'a'}], prompt='{q}', gold='{expected}')\n"
        "@scorer\n"
        "def broken(sample): return sample.response != sample.target\n"
    )
    shown = nel("validate", "-b", "broken.py", code=1).stdout
    assert "the right answer 'a' scores 0, not 1" in shown and "the empty answer '' scores 1, not 0" in shown


def test_validate_needs_both_url_and_model(nel):
    assert "--model-id" in nel("validate", "-b", "tiny_choice", "--model-url", "http://127.0.0.1:1", code=2).stderr


def test_help_of_every_command_works(nel):
    for command in (["eval", "run"], ["eval", "status"], ["eval", "logs"], ["eval", "stop"], ["list"], ["validate"]):
        assert "Usage: nel" in nel(*command, "--help").stdout
    assert "0.4" in nel("--version").stdout
