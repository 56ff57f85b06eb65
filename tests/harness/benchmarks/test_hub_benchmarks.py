"""The benchmarks whose data is on the hub, read through the real `datasets` from the testbed's hub."""

from typing import Any

import pytest

from nemo_evaluator.benchmarks.mgsm import LANGUAGES, problems
from nemo_evaluator.errors import UsageError
from tests.harness.benchmarks.conftest import RunPython

SELF_TEST = """
import asyncio, json, sys
from nemo_evaluator.environments.registry import resolve

RESPONSES = {"": 0.0, "I do not know.": 0.0, "Answer: 987654321": 0.0, "Answer: E": 0.0}

async def main(name, params):
    environment = resolve(name, params)
    await environment.prepare()
    failures = []
    for idx in range(len(environment)):
        seed = await environment.seed(idx)
        for response, reward in {await environment.gold_response(idx): 1.0, **RESPONSES}.items():
            if (await environment.verify_sample(seed, response)).reward != reward:
                failures.append([seed.metadata.get("category"), seed.expected_answer, response])
    seed = await environment.seed(0)
    return {
        "size": len(environment), "failures": failures, "provenance": environment.provenance(),
        "prompt": seed.prompt, "metadata": seed.metadata, "expected": seed.expected_answer,
    }

print(json.dumps(asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))))
"""


@pytest.mark.hub
def test_gsm8k_accepts_its_gold_answers(run_python: RunPython) -> None:
    seen = run_python(SELF_TEST, "gsm8k", "{}")

    assert (seen["size"], seen["failures"]) == (1319, [])
    assert seen["expected"] == "18"
    assert seen["prompt"].startswith("Solve the problem step by step") and "Janet" in seen["prompt"]
    assert seen["metadata"] == {}


@pytest.mark.hub
def test_mmlu_accepts_its_gold_answers(run_python: RunPython) -> None:
    seen = run_python(SELF_TEST, "mmlu", "{}")

    assert seen["size"] > 2000
    assert seen["failures"] == []
    assert all(f"\n{letter}. " in seen["prompt"] for letter in "ABCD")
    assert seen["metadata"].keys() == {"category"}


@pytest.fixture(scope="module")
def mgsm(run_python: RunPython) -> dict[str, Any]:
    return run_python(SELF_TEST, "mgsm", "{}")


@pytest.mark.hub
@pytest.mark.parametrize("language", LANGUAGES)
def test_mgsm_accepts_its_gold_answers_in_each_language(language: str, mgsm: dict[str, Any]) -> None:
    assert [failure for failure in mgsm["failures"] if failure[0] == language] == []


@pytest.mark.hub
def test_mgsm_asks_in_all_languages_by_default(mgsm: dict[str, Any]) -> None:
    assert mgsm["provenance"]["config"] == list(LANGUAGES)
    assert mgsm["size"] % len(LANGUAGES) == 0


@pytest.mark.hub
def test_mgsm_asks_in_the_chosen_language(run_python: RunPython, mgsm: dict[str, Any]) -> None:
    german = run_python(SELF_TEST, "mgsm", '{"language": "de"}')

    assert german["size"] == mgsm["size"] / len(LANGUAGES)
    assert german["metadata"] == {"category": "de"}
    assert "Antwort: <Zahl>" in german["prompt"]


@pytest.mark.hub
@pytest.mark.parametrize("name", ["gsm8k", "mgsm"])
def test_a_run_can_pin_the_revision(name: str, run_python: RunPython, dead_hub: str) -> None:
    unpinned = run_python(SELF_TEST, name, "{}")
    commit = unpinned["provenance"]["revision"]

    assert run_python(SELF_TEST, name, f'{{"revision": "{commit}"}}', HF_ENDPOINT=dead_hub) == unpinned


@pytest.mark.parametrize(("language", "message"), [("xx", "no language 'xx'. Accepted: all, bn"), ([], "at all")])
def test_mgsm_names_the_languages_it_has(language: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        problems(language, "0" * 40)
