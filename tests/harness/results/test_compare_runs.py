"""Two results folders of direct mode, held against each other."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from nemo_evaluator.errors import UsageError
from nemo_evaluator.results.comparable import differences
from nemo_evaluator.results.compare import compare
from nemo_evaluator.results.direct_run import read_direct_run

DIGEST = "sha256:" + "0" * 64
OTHER = "sha256:" + "1" * 64
PARAMS = {"temperature": 0.0, "parallelism": 16, "extra": {"tokenizer": "org/tok", "tokenizer_backend": "huggingface"}}
ADAPTER = {"use_caching": True, "output_dir": "/a/gsm8k/adapter"}
HARNESS = {
    "image": f"registry/lm@{DIGEST}",
    "image_pinned_by_digest": True,
    "index_digest": DIGEST,
    "platform_digest": None,
    "packages": {"lm-eval": "0.4.9"},
}


def write_run(folder: Path, model: str = "run-a", state: str = "ok", **changed: Any) -> Path:
    """`changed`: harness, params, adapter_config, endpoint_type, task."""
    name = changed.get("task", "gsm8k")
    manifest = {
        "model": {"id": model, "endpoint_type": changed.get("endpoint_type", "completions")},
        "harness": HARNESS | changed.get("harness", {}),
        "tasks": {
            name: {
                "params": PARAMS | changed.get("params", {}),
                "adapter_config": ADAPTER | changed.get("adapter_config", {}),
            }
        },
    }
    (folder / name).mkdir(parents=True)
    (folder / "run_manifest.json").write_text(json.dumps(manifest))
    (folder / "summary.json").write_text(json.dumps({name: state}))
    return folder


def samples(folder: Path, scores: dict[int, Any], *, at: str = "2026-01-01T00-00-00.0", task: str = "gsm8k") -> None:
    """As lm-evaluation-harness leaves them."""
    lines = [
        {"doc_id": n, "doc_hash": f"h{n}", "filter": "strict-match", "metrics": ["exact_match"], "exact_match": score}
        for n, score in scores.items()
    ]
    path = folder / task / "model" / f"samples_{task}_{at}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def rows(folder: Path, rewards: dict[tuple[int, int], float | None]) -> None:
    """As our own benchmarks leave them."""
    lines = [{"problem_idx": n, "repeat": k, "reward": reward} for (n, k), reward in rewards.items()]
    (folder / "gsm8k/results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def reported(folder: Path, value: float, stderr: float | None, metric: str = "acc") -> None:
    score = {"value": value, "stats": {} if stderr is None else {"stderr": stderr}}
    tasks = {"gsm8k": {"metrics": {metric: {"scores": {metric: score}}}}}
    (folder / "gsm8k/results.yml").write_text(yaml.safe_dump({"results": {"tasks": tasks}}))


@pytest.fixture
def a(tmp_path):
    return write_run(tmp_path / "a", "run-a")


def test_another_model_at_another_place_is_what_comparing_is_for(a, tmp_path):
    faster = {"parallelism": 64, "max_retries": 9, "request_timeout": 1}
    elsewhere = {"output_dir": "/b/gsm8k/adapter", "use_request_logging": True}
    b = write_run(tmp_path / "b", "run-b", params=faster, adapter_config=elsewhere)
    assert differences(read_direct_run(a), read_direct_run(b)) == []


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"endpoint_type": "chat"}, "endpoint type"),
        ({"params": {"extra": PARAMS["extra"] | {"tokenizer": "org/other"}}}, "gsm8k tokenizer"),
        ({"params": {"extra": PARAMS["extra"] | {"num_fewshot": 3}}}, "gsm8k params.extra.num_fewshot"),
        ({"params": {"temperature": 0.7}}, "gsm8k params.temperature"),
        ({"params": {"limit_samples": 5}}, "gsm8k params.limit_samples"),
        ({"adapter_config": {"use_system_prompt": True}}, "gsm8k adapter_config.use_system_prompt"),
        ({"harness": {"image": f"registry/lm@{OTHER}", "index_digest": OTHER}}, "image digest"),
        ({"state": "failed(1)"}, "task gsm8k"),
    ],
)
def test_what_could_have_moved_a_score_is_a_difference(a, tmp_path, changed, what):
    b = write_run(tmp_path / "b", "run-b", **changed)
    assert [found.what for found in differences(read_direct_run(a), read_direct_run(b))] == [what]


def test_a_task_that_only_one_of_them_ran_is_a_difference(a, tmp_path):
    b = write_run(tmp_path / "b", task="ifeval")
    found = differences(read_direct_run(a), read_direct_run(b))
    assert [str(difference) for difference in found] == [
        "task gsm8k: 'ok' and 'not run'",
        "task ifeval: 'not run' and 'ok'",
    ]


def test_without_a_tokenizer_the_served_names_are_the_tokenizers(tmp_path):
    own = {"extra": {"tokenizer_backend": "huggingface"}}
    a, b = (write_run(tmp_path / model, model, params=own) for model in ("org-a", "org-b"))
    assert [found.what for found in differences(read_direct_run(a), read_direct_run(b))] == ["gsm8k tokenizer"]


def test_an_index_and_a_platform_digest_of_one_image_are_compared_like_with_like(tmp_path):
    both = {"index_digest": DIGEST, "platform_digest": OTHER}
    a = write_run(tmp_path / "a", harness=both | {"image": f"registry/lm@{DIGEST}"})
    b = write_run(tmp_path / "b", harness=both | {"image": f"registry/lm@{OTHER}", "index_digest": None})
    assert differences(read_direct_run(a), read_direct_run(b)) == []


def test_without_digests_the_packages_decide(tmp_path):
    tag = {"image": "registry/lm:26.03", "image_pinned_by_digest": False, "index_digest": None}
    a = write_run(tmp_path / "a", harness=tag)
    b = write_run(tmp_path / "b", harness=tag | {"packages": {"lm-eval": "0.4.8"}})
    assert [str(found) for found in differences(read_direct_run(a), read_direct_run(b))] == [
        "package lm-eval: '0.4.9' and '0.4.8'"
    ]


def test_samples_of_the_same_questions_are_paired(a, tmp_path):
    b = write_run(tmp_path / "b", "run-b")
    samples(a, {n: float(n < 5) for n in range(10)})
    samples(b, {n: float(n < 5 or n > 5) for n in range(10)})
    (found,) = compare(read_direct_run(a), read_direct_run(b))
    assert (found.metric, found.method, found.n) == ("exact_match__strict-match", "mcnemar", 10)
    assert (found.a.value, found.b.value, found.difference) == (0.5, 0.9, pytest.approx(0.4))
    assert (found.gained, found.lost, found.p_value) == (4, 0, 0.125)
    assert found.a.interval.lower < 0.5 < found.a.interval.upper


def test_failed_requests_are_counted_and_move_nothing(a, tmp_path):
    """Ten outages in b are no regression of its model."""
    b = write_run(tmp_path / "b", "run-b")
    rows(a, {(n, 0): 1.0 for n in range(100)})
    rows(b, {(n, 0): None if n < 10 else 1.0 for n in range(100)})
    (found,) = compare(read_direct_run(a), read_direct_run(b))
    assert (found.metric, found.n, found.difference, found.p_value) == ("mean_reward", 90, 0.0, 1.0)
    assert (found.a.errors, found.b.errors, found.a.unmatched) == (0, 10, 0)


def test_a_question_counts_once_however_often_it_was_repeated(a, tmp_path):
    b = write_run(tmp_path / "b", "run-b")
    rows(a, {(n, k): float(k == 0) for n in range(20) for k in range(4)})
    rows(b, {(n, k): float(k <= 1) for n in range(20) for k in range(4)} | {(0, 3): None})
    (found,) = compare(read_direct_run(a), read_direct_run(b))
    assert (found.method, found.n) == ("paired bootstrap", 20)
    assert found.a.value == pytest.approx((19 * 0.25 + 1 / 3) / 20)


def test_questions_that_one_run_lacks_are_counted(a, tmp_path):
    b = write_run(tmp_path / "b", "run-b")
    samples(a, {n: 1.0 for n in range(10)})
    samples(b, {n: 1.0 for n in range(3, 11)})
    (found,) = compare(read_direct_run(a), read_direct_run(b))
    assert (found.n, found.a.unmatched, found.b.unmatched) == (7, 3, 1)


def test_the_same_number_of_another_question_is_no_pair(a, tmp_path):
    b = write_run(tmp_path / "b", "run-b")
    samples(a, {n: 1.0 for n in range(4)})
    samples(b, {n: 0.0 for n in range(4)})
    path = next(b.rglob("samples_*.jsonl"))
    path.write_text(path.read_text().replace('"h', '"moved'))
    assert list(compare(read_direct_run(a), read_direct_run(b))) == []


def test_of_a_task_that_ran_twice_the_newer_samples_count(a, tmp_path):
    b = write_run(tmp_path / "b", "run-b")
    samples(a, {0: 1.0})
    samples(b, {0: 0.0}, at="2026-01-01T00-00-00.0")
    samples(b, {0: 1.0}, at="2026-01-02T00-00-00.0")
    (found,) = compare(read_direct_run(a), read_direct_run(b))
    assert found.difference == 0


def test_a_torn_last_line_is_passed_over(a, tmp_path):
    b = write_run(tmp_path / "b", "run-b")
    for folder in (a, b):
        samples(folder, {0: 1.0, 1: 0.0})
        path = next(folder.rglob("samples_*.jsonl"))
        path.write_text(path.read_text() + '{"doc_id": 2, "met')
    (found,) = compare(read_direct_run(a), read_direct_run(b))
    assert found.n == 2


def test_without_samples_the_harness_s_standard_errors_tell(a, tmp_path):
    b = write_run(tmp_path / "b", "run-b")
    reported(a, 0.50, 0.03)
    reported(b, 0.60, 0.04)
    (found,) = compare(read_direct_run(a), read_direct_run(b))
    assert (found.method, found.n) == ("unpaired", None)
    assert found.p_value == pytest.approx(0.0455, abs=1e-3)
    assert found.lower == pytest.approx(0.002, abs=1e-3)


def test_a_score_without_a_standard_error_is_shown_without_an_interval(a, tmp_path):
    b = write_run(tmp_path / "b", "run-b")
    reported(a, 12.0, None, "perplexity")
    reported(b, 11.0, None, "perplexity")
    (found,) = compare(read_direct_run(a), read_direct_run(b))
    assert (found.difference, found.p_value, found.lower) == (-1.0, None, None)


@pytest.mark.parametrize("content", [None, "{", "[]", "{}"])
def test_what_is_no_results_folder_is_named(tmp_path, content):
    if content is not None:
        (tmp_path / "run_manifest.json").write_text(content)
        (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(UsageError, match=r"run_manifest\.json"):
        read_direct_run(tmp_path)


def test_the_command_refuses_and_lists_what_differs(nel, a, tmp_path):
    b = write_run(tmp_path / "b", "run-b", endpoint_type="chat", params={"temperature": 0.7})
    refused = nel("compare", str(a), str(b), code=2)
    assert "endpoint type: 'completions' and 'chat'" in refused.stderr
    assert "gsm8k params.temperature: 0.0 and 0.7" in refused.stderr
    assert refused.stderr.splitlines()[-1] == "Run one again like the other, or pass --allow-differences."
    assert refused.stdout == ""


def test_differences_that_are_allowed_are_still_told(nel, a, tmp_path):
    b = write_run(tmp_path / "b", "run-b", params={"temperature": 0.7})
    for folder, right in ((a, 5), (b, 7)):
        samples(folder, {n: float(n < right) for n in range(10)})
    shown = nel("compare", str(a), str(b), "--allow-differences").stdout
    assert "they differ in gsm8k params.temperature: 0.0 and 0.7" in shown
    assert "+0.2000" in shown


def test_for_programs_there_is_json_alone(nel, a, tmp_path):
    b = write_run(tmp_path / "b", "run-b")
    rows(a, {(n, 0): 1.0 for n in range(10)})
    rows(b, {(n, 0): float(n > 2) if n else None for n in range(10)})
    done = nel("compare", str(a), str(b), "--json")
    (found,) = json.loads(done.stdout)["comparisons"]
    assert (found["lost"], found["gained"], found["b"]["errors"]) == (2, 0, 1)
    assert "their request failed in b: 1" in nel("compare", str(a), str(b)).stdout


def test_nothing_in_common_is_refused(nel, a, tmp_path):
    b = write_run(tmp_path / "b", "run-b")
    assert "no finished task" in nel("compare", str(a), str(b), code=2).stderr
    assert "There is no folder" in nel("compare", str(a), "nowhere", code=2).stderr
