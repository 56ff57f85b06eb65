"""Datasets of the hub: at a commit, from the cache, and without the hub."""

from pathlib import Path

import pytest

from nemo_evaluator.environments.hub import HubDataset
from tests.harness.benchmarks.conftest import RunPython

LOAD = """
import json, sys
from pathlib import Path
from nemo_evaluator.environments.rows import load_rows
from nemo_evaluator.errors import UsageError

try:
    rows = load_rows(sys.argv[1], Path(), {})
    result = {"size": len(rows), "first": rows[0], "last": rows[-1], **rows.provenance()}
except UsageError as error:
    result = {"error": str(error)}
print(json.dumps({**result, "imported": "datasets" in sys.modules}))
"""
GSM8K = "hf://openai/gsm8k?config=main&split=test"


@pytest.mark.parametrize(
    ("text", "dataset"),
    [
        ("org/name", HubDataset("org/name")),
        ("gsm8k", HubDataset("gsm8k")),
        (
            "hf://org/name?config=main&split=dev&revision=v1.0",
            HubDataset("org/name", "main", "dev", "v1.0"),
        ),
        ("a/b/c", None),
        ("what is this", None),
    ],
)
def test_how_a_dataset_is_named(text: str, dataset: HubDataset | None) -> None:
    assert HubDataset.parse(text) == dataset


@pytest.mark.hub
def test_the_commit_is_part_of_the_provenance(run_python: RunPython) -> None:
    seen = run_python(LOAD, GSM8K)

    assert (seen["dataset"], seen["config"], seen["split"]) == ("openai/gsm8k", "main", "test")
    assert len(seen["revision"]) == 40
    assert len(seen["content_hash"]) == 64


@pytest.mark.hub
def test_a_prepared_dataset_gives_the_same_rows_without_importing_datasets(
    run_python: RunPython, tmp_path: Path
) -> None:
    first = run_python(LOAD, GSM8K, HF_HOME=str(tmp_path))
    second = run_python(LOAD, GSM8K, HF_HOME=str(tmp_path))

    assert (first.pop("imported"), second.pop("imported")) == (True, False)
    assert first == second
    assert first["first"]["question"].startswith("Janet")


@pytest.mark.hub
def test_arrow_gives_what_datasets_gives(run_python: RunPython) -> None:
    code = """
import json, datasets
from nemo_evaluator.environments.hub import HubDataset
pairs = []
for name, config in (("cais/mmlu", "all"), ("juletxara/mgsm", "te"), ("aps/super_glue", "boolq")):
    split = "validation" if config == "boolq" else "test"
    ours, theirs = HubDataset(name, config, split).load(), datasets.load_dataset(name, config, split=split)
    pairs.append([len(ours) == len(theirs), all(ours[i] == theirs[i] for i in (0, 7, len(ours) - 1))])
print(json.dumps(pairs))
"""
    assert run_python(code) == [[True, True]] * 3


@pytest.mark.hub
@pytest.mark.parametrize("offline", ["0", "1"])
def test_the_cache_answers_when_the_hub_does_not(offline: str, run_python: RunPython, dead_hub: str) -> None:
    online = run_python(LOAD, GSM8K)

    cached = run_python(LOAD, GSM8K, HF_ENDPOINT=dead_hub, HF_HUB_OFFLINE=offline)

    assert cached.pop("imported") is False
    assert cached.items() <= online.items()


@pytest.mark.hub
def test_a_pinned_commit_needs_no_hub(run_python: RunPython, dead_hub: str) -> None:
    commit = run_python(LOAD, GSM8K)["revision"]

    assert run_python(LOAD, f"{GSM8K}&revision={commit}", HF_ENDPOINT=dead_hub)["revision"] == commit


@pytest.mark.hub
@pytest.mark.parametrize(
    ("dataset", "messages"),
    [
        ("no/such", ["Dataset 'no/such'", "doesn't exist on the Hub or cannot be accessed", "HF_TOKEN"]),
        ("hf://openai/gsm8k?config=nope", ["config=nope", "Available: ['main']"]),
        ("hf://openai/gsm8k?config=main&split=nope", ["split=nope", "['train', 'test']"]),
    ],
)
def test_what_is_not_on_the_hub_is_one_clear_line(dataset: str, messages: list[str], run_python: RunPython) -> None:
    error = run_python(LOAD, dataset)["error"]

    assert all(message in error for message in messages), error
    assert "\n" not in error


@pytest.mark.hub
def test_a_hub_that_cannot_be_reached_is_one_clear_line_at_once(
    run_python: RunPython, dead_hub: str, tmp_path: Path
) -> None:
    seen = run_python(LOAD, GSM8K, HF_ENDPOINT=dead_hub, HF_HOME=str(tmp_path))

    assert dead_hub in seen["error"]
    assert "cannot be reached" in seen["error"]
    assert "HF_ENDPOINT" in seen["error"]
    assert seen["imported"] is False, "datasets would have retried for half a minute"


@pytest.mark.hub
def test_offline_mode_without_the_data_says_so(run_python: RunPython, tmp_path: Path) -> None:
    seen = run_python(LOAD, GSM8K, HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path))

    assert "'openai/gsm8k'" in seen["error"]
    assert "HF_HUB_OFFLINE is set" in seen["error"]
