"""What is refused, always in one line, always before anything was created or deleted."""

import json
import os
import socket
import time

import pytest

from nemo_evaluator.direct.claim import Claim
from nemo_evaluator.direct.errors import Refused
from nemo_evaluator.direct.plan import parse_plan
from nemo_evaluator.direct.run import prepare
from tests.harness.direct.world import TOKEN, install_harness, plan_document, task_document


@pytest.fixture
def environ(tmp_path):
    command = install_harness(tmp_path / "bin")
    return {"PATH": str(command.parent), "ENDPOINT_TOKEN": TOKEN}


@pytest.fixture
def output(tmp_path):
    return tmp_path / "results"


def tree(folder):
    return {
        str(path): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if folder.exists()
    }


def refusal(environ, output, *tasks, **changes):
    changes.setdefault("tasks", tasks or ("gsm8k",))
    before = tree(output.parent)
    with pytest.raises(Refused) as caught:
        prepare(parse_plan(plan_document(output, **changes)), environ)
    assert tree(output.parent) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


def write_claim(output, **changes):
    output.mkdir()
    owner = {
        "pid": 1,
        "pid_started": "1",
        "host": "node7",
        "machine": "node7",
        "job": "slurm:7",
        "heartbeat_unix": time.time(),
    }
    (output / ".nemotron-eval.lock").write_text(json.dumps({**owner, **changes}))


def test_an_endpoint_url_that_is_missing(environ, output):
    assert "EVAL_ENDPOINT_URL" in refusal(environ, output, model={"endpoint_url": None})


def test_an_endpoint_url_variable_that_is_unset(environ, output):
    model = {"endpoint_url": None, "endpoint_url_variable": "EVAL_ENDPOINT_URL"}
    assert "EVAL_ENDPOINT_URL" in refusal(environ, output, model=model)


def test_a_model_id_that_is_missing(environ, output):
    assert "EVAL_MODEL_HANDLE" in refusal(environ, output, model={"id": " "})


def test_a_type_that_is_neither_chat_nor_completions(environ, output):
    assert "'embedding'" in refusal(environ, output, model={"endpoint_type": "embedding"})


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/chat/completions/", "/v1", ""])
def test_a_url_path_that_contradicts_the_type(environ, output, path):
    assert repr(path) in refusal(environ, output, model={"endpoint_url": f"http://host{path}"})


@pytest.mark.parametrize("url", ["host/v1/completions", "ftp://host/v1/completions", "http:///v1/completions"])
def test_a_url_that_is_none(environ, output, url):
    assert "http(s)" in refusal(environ, output, model={"endpoint_url": url})


@pytest.mark.parametrize("value", [None, ""])
def test_a_token_variable_that_is_named_but_unset(environ, output, value):
    environ.pop("ENDPOINT_TOKEN")
    if value is not None:
        environ["ENDPOINT_TOKEN"] = value
    message = refusal(environ, output, secrets=[])
    assert "ENDPOINT_TOKEN" in message and "EVAL_API_KEY_NAME=null" in message


@pytest.mark.parametrize("token", [f"{TOKEN}\nmore", f"{TOKEN}\r\n", f"{TOKEN} ", f"{TOKEN}\u00fc"])
def test_a_token_that_no_request_can_carry(environ, output, token):
    environ["ENDPOINT_TOKEN"] = token
    message = refusal(environ, output)
    assert "ENDPOINT_TOKEN holds" in message and TOKEN not in message


def test_any_other_secret_of_the_plan_that_is_unset(environ, output):
    assert "HF_TOKEN" in refusal(environ, output, secrets=["ENDPOINT_TOKEN", "HF_TOKEN"])


@pytest.mark.parametrize("name", ["", " ", ".", "..", "a/b", "../a", "a\\b", "a\nb", "-x", "summary.json"])
def test_a_task_name_that_cannot_be_a_folder(environ, output, name):
    assert repr(name) in refusal(environ, output, name)


@pytest.mark.parametrize("names", [("gsm8k", "gsm8k"), ("milu_Hindi", "milu_hindi")])
def test_two_tasks_that_resolve_to_one_folder(environ, output, names):
    assert "one folder" in refusal(environ, output, *names)


def test_no_task_at_all(environ, output):
    assert "-t TASK" in refusal(environ, output, tasks=[])


def test_a_params_key_that_belongs_under_extra(environ, output):
    message = refusal(environ, output, task_document("gsm8k", {"num_fewshot": 5}))
    assert "num_fewshot" in message and "params.extra" in message


def test_interceptors_and_switches_of_the_adapter_together(environ, output):
    adapter = {"interceptors": [{"name": "endpoint"}], "use_caching": True, "endpoint_type": "chat", "output_dir": None}
    message = refusal(environ, output, task_document("gsm8k", {}, adapter), dry_run=True)
    assert "interceptors and use_caching;" in message and "null" in message


def test_an_output_folder_that_is_relative(environ, tmp_path):
    with pytest.raises(Refused, match="relative"):
        prepare(parse_plan(plan_document("results")), environ)


def test_an_output_folder_that_is_a_file(environ, output):
    output.write_text("")
    assert "not a folder" in refusal(environ, output)


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_task_folder_that_is_a_symbolic_link(environ, output, overwrite):
    elsewhere = output.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("data")
    output.mkdir()
    (output / "gsm8k").symlink_to(elsewhere)
    assert "symbolic link" in refusal(environ, output, overwrite=overwrite)


def test_a_task_folder_that_is_a_dangling_link(environ, output):
    output.mkdir()
    (output / "gsm8k").symlink_to(output.parent / "nowhere")
    assert "symbolic link" in refusal(environ, output)


def test_a_file_where_the_task_folder_should_be(environ, output):
    output.mkdir()
    (output / "gsm8k").write_text("")
    assert "not a folder" in refusal(environ, output, overwrite=True)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_task_folder_with_results(environ, output, dry_run):
    (output / "gsm8k").mkdir(parents=True)
    (output / "gsm8k/results_1.json").write_text("{}")
    message = refusal(environ, output, dry_run=dry_run)
    assert "resume=true" in message and "overwrite=true" in message and "EVAL_RESULTS_DIR" in message


def test_overwrite_touches_nothing_when_another_task_is_wrong(environ, output):
    (output / "gsm8k").mkdir(parents=True)
    (output / "gsm8k/results_1.json").write_text("{}")
    refusal(environ, output, "gsm8k", "../gsm8k", overwrite=True)


def test_overwrite_and_resume_together(environ, output):
    assert "choose one" in refusal(environ, output, overwrite=True, resume=True)


def test_a_job_without_a_harness(environ, output):
    environ["PATH"] = "/nonexistent"
    assert "EVAL_HARNESS_IMAGE" in refusal(environ, output)


@pytest.mark.parametrize("changes", [{}, {"overwrite": True}, {"resume": True}, {"dry_run": True}])
def test_a_live_claim_whatever_was_asked(environ, output, changes):
    write_claim(output)
    message = refusal(environ, output, **changes)
    assert "node7" in message and "slurm:7" in message


def test_a_claim_of_a_process_that_lives_on_this_machine(environ, output):
    output.mkdir()
    with Claim(output, "slurm:7", resume=False):
        assert str(os.getpid()) in refusal(environ | {"SLURM_JOB_ID": "7"}, output)


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_stale_claim_is_reported_and_left_to_resume(environ, output, overwrite):
    write_claim(output, heartbeat_unix=time.time() - 301)
    message = refusal(environ, output, overwrite=overwrite)
    assert "stale" in message and "resume=true" in message
    prepare(parse_plan(plan_document(output, resume=True)), environ)


@pytest.mark.parametrize("restarts", [0, 3])
def test_a_requeued_job_takes_its_own_claim_back(environ, output, restarts):
    write_claim(output, restarts=restarts)
    again = {"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": str(restarts + 1)}
    prepare(parse_plan(plan_document(output)), environ | again)


def test_a_second_step_of_a_job_is_no_restart_of_it(environ, output):
    """On another node of the same job, in the same life."""
    write_claim(output, restarts=1)
    assert "node7" in refusal(environ | {"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": "1"}, output)


def test_a_job_that_was_killed_without_being_counted_takes_its_silent_claim_back(environ, output):
    write_claim(output, heartbeat_unix=time.time() - 40)
    prepare(parse_plan(plan_document(output)), environ | {"SLURM_JOB_ID": "7"})


def test_a_restarted_job_of_a_platform_that_counts_nothing_takes_its_claim_back(environ, output):
    write_claim(output, job="lepton:eval-1")
    prepare(parse_plan(plan_document(output)), environ | {"LEPTON_JOB_NAME": "eval-1"})


def test_the_same_number_on_another_cluster_is_another_job(environ, output):
    write_claim(output, job="slurm:east:7")
    refusal(environ | {"SLURM_JOB_ID": "7", "SLURM_CLUSTER_NAME": "west"}, output)


def test_a_dead_owner_on_this_machine_holds_nothing(environ, output):
    output.mkdir()
    with Claim(output, None, resume=False):
        claim = json.loads((output / ".nemotron-eval.lock").read_text())
    assert claim["host"] == socket.gethostname() and not (output / ".nemotron-eval.lock").exists()
    (output / ".nemotron-eval.lock").write_text(json.dumps({**claim, "pid": 2**22 + 1}))
    prepare(parse_plan(plan_document(output)), environ)


@pytest.mark.parametrize(
    "now",
    [
        {"model": {"id": "other-model"}},
        {"tasks": [task_document("gsm8k", {"temperature": 0.7})]},
        {"harness": plan_document("/")["harness"] | {"image": "other"}},
    ],
)
def test_to_resume_as_something_else(environ, output, now):
    before = plan_document(output)
    output.mkdir()
    manifest = {"model": before["model"], "harness": before["harness"], "tasks": {"gsm8k": before["tasks"][0]}}
    (output / "run_manifest.json").write_text(json.dumps(manifest))
    assert "before" in refusal(environ, output, resume=True, **now)


def test_more_parallel_requests_are_no_other_run(environ, output):
    before = plan_document(output)
    output.mkdir()
    manifest = {"model": before["model"], "harness": before["harness"], "tasks": {"gsm8k": before["tasks"][0]}}
    (output / "run_manifest.json").write_text(json.dumps(manifest))
    faster = task_document("gsm8k", {**before["tasks"][0]["params"], "parallelism": 64})
    prepare(parse_plan(plan_document(output, [faster], resume=True)), environ)
