"""A sweep as a user runs it, on this machine: real runners around a fake harness."""

import json
import os
import pty
import re
import subprocess
from contextlib import suppress

import pytest

SWEEP = ("-b", "local_eval_direct", "-t", "gsm8k", "-m")
MODELS = "target.api_endpoint.model_id=org/a,b"
FAILING = json.dumps({"gsm8k": [{"exit": 3}]})
SLOW = json.dumps({"gsm8k": [{"sleep": 600}]})


@pytest.fixture
def sweep(user):
    """What it submitted is stopped at the end."""

    def run(*words: str, **environ: str):
        return user.evaluate(*SWEEP, *words, **environ)

    yield run
    user("jobs", "cancel", "--sweep")


def points(done) -> dict:
    assert done.returncode == 0, done.stderr
    return {point["point"]: point for point in json.loads(done.stdout)["points"]}


def test_each_point_is_a_job_with_a_folder_of_its_own(user, sweep):
    done = sweep(MODELS)
    assert done.returncode == 0, done.stderr
    assert "2 submitted" in done.stdout
    assert user("jobs", "wait", "--sweep").returncode == 0
    models = {p.parent.name: json.loads(p.read_text())["model"]["id"] for p in user.results.glob("*/run_manifest.json")}
    assert models == {"org-a": "org/a", "b": "b"}


def test_its_jobs_are_shown_together(user, sweep):
    submitted = points(sweep(MODELS, "--json"))
    user("jobs", "wait", "--sweep")
    shown = user("jobs", "status", "--sweep")
    assert [line.split()[:2] for line in shown.stdout.splitlines()[1:3]] == [["org-a", "completed"], ["b", "completed"]]
    assert shown.stdout.splitlines()[-1].endswith(": 2 completed.")
    states = points(user("jobs", "status", "--sweep", "--json"))
    assert {name: state["job"] for name, state in states.items()} == {n: p["job"]["id"] for n, p in submitted.items()}


def test_on_a_terminal_they_are_shown_until_the_last_has_ended(user, sweep):
    sweep(MODELS, FAKE_HARNESS=json.dumps({"gsm8k": [{"sleep": 3}]}))
    shown = on_a_terminal(user, "jobs", "status", "--sweep")
    assert "running" in shown and shown.rstrip().endswith(": 2 completed.")


def on_a_terminal(user, *words: str) -> str:
    """Everything that a command writes until it ends."""
    ours, theirs = pty.openpty()
    environ = user.environ | {"TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(user.command(*words), cwd=user.folder, env=environ, stdin=theirs, stdout=theirs) as process:
        os.close(theirs)
        said = b""
        with suppress(OSError):  # EIO: nobody has the other end any more
            while chunk := os.read(ours, 4096):
                said += chunk
        os.close(ours)
        assert process.wait() == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode())


def test_without_a_submission_every_point_is_shown(user, sweep):
    shown = json.loads(sweep(MODELS, "-d").stdout)["points"]
    assert [(p["point"], p["job"]["output_dir"]) for p in shown] == [
        ("org-a", f"{user.results}/org-a"),
        ("b", f"{user.results}/b"),
    ]
    assert not user.results.exists() and "No sweep" in user("jobs", "status", "--sweep").stderr


def test_a_sweep_that_is_run_again_leaves_what_is_submitted_alone(user, sweep):
    first = points(sweep(MODELS, "--json"))
    again = points(sweep("target.api_endpoint.model_id=org/a,b,c", "--json"))
    assert {name: point["fate"] for name, point in again.items()} == {"org-a": "kept", "b": "kept", "c": "submitted"}
    assert again["b"]["job"] == first["b"]["job"]
    assert user("jobs", "wait", "--sweep").returncode == 0
    assert len(json.loads(user("jobs", "list", "--json").stdout)) == 3


def test_a_point_that_failed_is_submitted_again_and_a_finished_one_is_not(user, sweep):
    first = points(sweep(MODELS, "--json", FAKE_HARNESS=FAILING))
    assert user("jobs", "wait", "--sweep").returncode == 1
    refused = sweep(MODELS)
    assert refused.returncode == 1 and "already contains results" in refused.stderr
    again = points(sweep(MODELS, "resume=true", "--json"))
    assert again["b"]["job"]["id"] != first["b"]["job"]["id"]
    assert user("jobs", "wait", "--sweep").returncode == 0
    assert points(sweep(MODELS, "resume=true", "--json"))["b"]["fate"] == "kept"


def test_one_point_that_fails_does_not_stop_the_others(user, sweep):
    (user.results / "org-a/gsm8k").mkdir(parents=True)
    (user.results / "org-a/gsm8k/results.yml").write_text("results: {}\n")
    done = sweep(MODELS, "--json")
    fates = {point["point"]: point["fate"] for point in json.loads(done.stdout)["points"]}
    assert done.returncode == 1 and fates == {"org-a": "failed", "b": "submitted"}


def test_all_jobs_are_cancelled_at_once(user, sweep):
    sweep(MODELS, FAKE_HARNESS=SLOW)
    assert len(re.findall("was asked to stop", user("jobs", "cancel", "--sweep").stdout)) == 2
    assert user("jobs", "wait", "--sweep").returncode == 75


def test_a_file_has_a_point_a_table(user, sweep):
    (user.folder / "sweep.toml").write_text(
        '[early]\nenv.EVAL_MODEL_HANDLE = "step-1"\n'
        '[late]\ntarget.api_endpoint.model_id = "step-2"\ntarget.api_endpoint.url = "http://b/v1/completions"\n'
    )
    done = user.evaluate(*SWEEP[:-1], "--sweep", "sweep.toml", "-d")
    plans = {p["point"]: p["job"]["plan"] for p in json.loads(done.stdout)["points"]}
    assert {name: plan["model"]["id"] for name, plan in plans.items()} == {"early": "step-1", "late": "step-2"}
    assert plans["late"]["model"]["endpoint_url"] == "http://b/v1/completions"
    assert plans["late"]["output_dir"] == f"{user.results}/late"


class TestIsRefused:
    def test_when_two_points_would_write_to_one_folder(self, user, sweep):
        done = sweep("output_dir=/x,/x", "-d")
        assert done.returncode == 2 and "both write to /x" in done.stderr

    def test_when_a_point_cannot_be_compiled_and_then_nothing_is_submitted(self, user, sweep):
        done = sweep("target.api_endpoint.url=http://a/v1/completions,nowhere")
        assert done.returncode == 2 and "nowhere: The endpoint 'nowhere' is no URL" in done.stderr
        assert user("jobs", "list").stdout == ""

    def test_when_it_is_to_be_waited_for(self, user):
        done = user.evaluate("-r", "local_eval_direct", "-m", MODELS)
        assert done.returncode == 2 and "--batch" in done.stderr

    def test_when_nothing_varies(self, user, sweep):
        done = sweep("target.api_endpoint.model_id=a")
        assert done.returncode == 2 and "Nothing to sweep over" in done.stderr

    def test_a_comma_list_without_m(self, user):
        done = user.evaluate(*SWEEP[:-1], MODELS)
        assert done.returncode == 2 and "add -m" in done.stderr

    def test_a_sweep_that_is_unknown(self, user, sweep):
        sweep(MODELS)
        done = user("jobs", "status", "--sweep", "nosuch")
        assert done.returncode == 2 and "Unknown sweep 'nosuch'" in done.stderr
