"""A job on this machine, attached and detached, by the real runner around a fake harness."""

import json
import os
import signal
import time
from datetime import UTC, datetime

import pytest

from nemotron.job import Submission
from nemotron.jobs import remember
from nemotron.profiles import NamedProfile
from tests.launcher.world import DOCKER, compiled

SLOW = json.dumps({"gsm8k": [{"print": "asking"}, {"sleep": 30}]})
FAILING = json.dumps({"gsm8k": [{"exit": 3}]})
HERE = ("-r", "local_eval_direct")
AWAY = ("-b", "local_eval_direct")


def job_id(done) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[2]


def wait_until(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


class TestAttached:
    def test_every_task_runs_and_the_output_appears(self, user):
        done = user.evaluate(*HERE, "-c", "base_en", "-t", "gsm8k", "-t", "hellaswag", "-t", "gsm8k")
        assert done.returncode == 0, done.stderr
        assert user.summary() == {"gsm8k": "ok", "hellaswag": "ok"}
        assert "running gsm8k" in done.stdout and "eval_summary:" in done.stdout

    def test_a_failed_task_is_exit_code_1(self, user):
        assert user.evaluate(*HERE, "-t", "gsm8k", FAKE_HARNESS=FAILING).returncode == 1
        assert user.summary() == {"gsm8k": "failed(3)"}

    def test_results_that_are_there_are_refused_with_exit_code_2(self, user):
        user.evaluate(*HERE, "-t", "gsm8k")
        again = user.evaluate(*HERE, "-t", "gsm8k")
        assert again.returncode == 2 and "already contains results" in again.stderr

    def test_no_scores_of_another_run_stand_below_a_refusal(self, user):
        score = {"results": {"tasks": {"gsm8k": {"metrics": {"em": {"scores": {"em": {"value": 0.5}}}}}}}}
        user.evaluate(*HERE, "-t", "gsm8k")
        (user.results / "gsm8k/results.yml").write_text(json.dumps(score))
        again = user.evaluate(*HERE, "-t", "gsm8k")
        assert again.returncode == 2 and "0.5" not in again.stdout

    def test_dry_run_true_writes_its_own_files(self, user):
        assert user.evaluate(*HERE, "-t", "gsm8k", "dry_run=true").returncode == 0
        assert {path.name for path in user.results.iterdir()} == {"run_manifest.dry-run.json", "summary.dry-run.json"}

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGHUP, 75), (signal.SIGINT, 130)])
    def test_signals_reach_the_runner(self, user, number, code):
        running = user.start(
            "steps", "run", "eval/model_eval", "preflight=false", *HERE, "-t", "gsm8k", FAKE_HARNESS=SLOW
        )
        wait_until(lambda: (user.results / "gsm8k/harness.log").exists())
        running.send_signal(number)
        running.communicate(timeout=180)
        assert running.returncode == code
        assert json.loads((user.results / "progress.json").read_text())["state"] == "stopped"

    def test_the_manifest_knows_the_state_of_the_source(self, user):
        user.evaluate(*HERE, "-t", "gsm8k")
        code = json.loads((user.results / "run_manifest.json").read_text())["code"]
        assert code["nemotron_version"] and len(code["git_sha"]) == 40

    def test_an_interpreter_that_is_none_is_named(self, user):
        done = user.evaluate(*HERE, "run.env.python=/none/python")
        assert done.returncode == 2 and "/none/python" in done.stderr


class TestDetached:
    def test_it_goes_on_alone_and_is_waited_for(self, user):
        job = job_id(user.evaluate(*AWAY, "-t", "gsm8k"))
        done = user("jobs", "wait", job)
        assert done.returncode == 0 and "completed" in done.stdout
        assert user.summary() == {"gsm8k": "ok"}

    def test_waiting_tells_of_the_worst_task(self, user):
        good = job_id(user.evaluate(*AWAY, "-t", "hellaswag", "output_dir=good"))
        bad = job_id(user.evaluate(*AWAY, "-t", "hellaswag", "-t", "gsm8k", FAKE_HARNESS=FAILING))
        assert user("jobs", "wait", good).returncode == 0
        assert user("jobs", "wait", good, bad).returncode == 1

    def test_a_refusal_is_told_at_once_and_leaves_no_job(self, user):
        user.evaluate(*HERE, "-t", "gsm8k")
        done = user.evaluate(*AWAY, "-t", "gsm8k")
        assert done.returncode == 2 and "already contains results" in done.stderr
        assert user("jobs", "list").stdout == ""
        assert not list((user.folder / "records").rglob("plan.json"))

    def test_status_logs_and_cancel_find_it_again(self, user):
        job = job_id(user.evaluate(*AWAY, "-t", "gsm8k", FAKE_HARNESS=SLOW))
        wait_until(lambda: "now gsm8k (1 of 1)" in user("jobs", "status").stdout)
        assert json.loads(user("jobs", "status", job, "--json").stdout)["phase"] == "running"
        assert "asking" in user("jobs", "logs", job).stdout
        user("jobs", "cancel", job)
        assert user("jobs", "wait", job).returncode == 75
        assert "stopped" in user("jobs", "list").stdout

    def test_logs_can_be_followed_to_the_end(self, user):
        slow = json.dumps({"gsm8k": [{"sleep": 1}, {"print": "last words"}]})
        job = job_id(user.evaluate(*AWAY, "-t", "gsm8k", FAKE_HARNESS=slow))
        followed = user("jobs", "logs", "-f", job).stdout
        assert "last words" in followed and followed.rstrip().endswith("gsm8k: ok")

    def test_cancelling_what_has_ended_says_so(self, user):
        job = job_id(user.evaluate(*AWAY, "-t", "gsm8k"))
        user("jobs", "wait", job)
        assert "has ended already: completed" in user("jobs", "cancel", job).stdout

    def test_waiting_can_be_limited(self, user):
        job = job_id(user.evaluate(*AWAY, "-t", "gsm8k", FAKE_HARNESS=SLOW))
        assert user("jobs", "wait", "--timeout", "0.1", job).returncode == 124
        user("jobs", "cancel", job)
        user("jobs", "wait", job)

    def test_one_that_was_killed_is_failed_not_running(self, user):
        job = job_id(user.evaluate(*AWAY, "-t", "gsm8k", FAKE_HARNESS=SLOW))
        row = json.loads(user("jobs", "status", job, "--json").stdout)
        os.killpg(int(row["backend_id"]), signal.SIGKILL)
        wait_until(lambda: "resume=true" in user("jobs", "status", job).stdout)
        assert user("jobs", "wait", job).returncode == 1

    def test_an_unknown_job_is_told_the_nearest(self, user):
        job = job_id(user.evaluate(*AWAY, "-t", "gsm8k"))
        done = user("jobs", "status", job[:-4] + "zzzz")
        assert done.returncode == 2 and job in done.stderr

    def test_without_any_job_it_says_how_to_submit_one(self, user):
        done = user("jobs", "status")
        assert done.returncode == 2 and "--batch" in done.stderr

    def test_an_engine_that_cannot_be_asked_does_not_hide_other_jobs(self, user):
        data = DOCKER.data | {"docker_host": "unix:///none.sock"}
        lost = compiled(profile=NamedProfile("docker", "[docker]", data), **user.environ)
        remember(lost, Submission("docker", "abc", {"folder": "/none"}), "docker", datetime.now(UTC))
        user("jobs", "wait", job_id(user.evaluate(*AWAY, "-t", "gsm8k")))
        phases = [row["phase"] for row in json.loads(user("jobs", "list", "--json").stdout)]
        assert phases == ["unknown", "completed"]

    def test_a_job_that_cannot_be_remembered_is_not_submitted(self, user):
        (user.folder / "records").write_text("a file where a folder should be")
        done = user.evaluate(*AWAY, "-t", "gsm8k")
        assert done.returncode == 1 and str(user.folder / "records") in done.stderr
        assert not user.results.exists()
