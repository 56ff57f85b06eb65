"""`nemotron jobs` for jobs on a cluster, whose results may be in folders that only the cluster has."""

import json

import pytest

from nemotron.job import Submission
from nemotron.jobs import remember
from tests.fakes.slurm import FakeSlurm
from tests.launcher.slurm.clusters import refer
from tests.launcher.test_states import NOW
from tests.launcher.world import SLURM, compiled


@pytest.fixture
def slurm(tmp_path):
    with FakeSlurm.at(tmp_path / "slurm") as slurm:
        yield slurm


@pytest.fixture
def job(slurm, user):
    """The id of a job in that state, for a user whose PATH has Slurm's commands."""
    user.environ = slurm.environ(user.environ)
    user.results.mkdir()

    def make(state, name="mine", **facts):
        ref = refer(slurm.add(name, state, **facts), name, user.folder / name)
        environ = {"NEMOTRON_HOME": user.environ["NEMOTRON_HOME"]}
        made = compiled(f"output_dir={user.results}", tasks=["gsm8k"], profile=SLURM, **environ)
        return remember(made, Submission("slurm", ref.job_id, ref.details), "slurm", NOW).id

    return make


def test_status_tells_the_cluster_number_the_reason_and_the_restarts(user, slurm, job):
    waiting = job("PENDING", reason="QOSMaxJobsPerUserLimit")
    said = user("jobs", "status", waiting).stdout
    assert "queued (waits for a limit of the QOS on jobs of one user at a time" in said
    assert "slurm 1" in said
    slurm.become(1, "RUNNING")
    slurm.become(1, "PREEMPTED")
    slurm.become(1, "PENDING", reason="Priority")
    assert "queued, started again once (waits behind jobs of higher priority)" in user("jobs", "status", waiting).stdout
    assert json.loads(user("jobs", "status", waiting, "--json").stdout)["restarts"] == 1


def test_a_number_of_restarts_is_told(user, slurm, job):
    running = job("RUNNING")
    for word in ["PREEMPTED", "PENDING", "RUNNING"] * 2:
        slurm.become(1, word)
    assert "running, started again 2 times" in user("jobs", "status", running).stdout


def test_every_row_has_the_same_keys(user, job):
    job("RUNNING"), job("COMPLETED", "other")
    rows = json.loads(user("jobs", "list", "--json").stdout)
    assert {tuple(row) for row in rows} == {
        (
            *("id", "name", "phase", "reason", "exit_code", "restarts"),
            *("profile", "backend", "backend_id", "submitted", "output_dir", "tasks"),
        )
    }


def test_a_cluster_that_is_down_hides_no_job(user, slurm, job):
    job("RUNNING"), job("COMPLETED", "other")
    slurm.says("squeue", stderr="slurm_load_jobs error: Unable to contact slurm controller\n", code=1)
    slurm.turn(accounting="down")
    done = user("jobs", "list")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2)


def test_waiting_ends_with_the_worst_of_the_jobs(user, slurm, job):
    good, bad, stopped = job("COMPLETED", "a"), job("FAILED", "b", exit="1:0"), job("CANCELLED", "c", by="0")
    assert user("jobs", "wait", good).returncode == 0
    assert user("jobs", "wait", good, stopped).returncode == 75
    done = user("jobs", "wait", good, bad, stopped)
    assert done.returncode == 1
    assert "failed (a task failed: summary.json and failures.txt of the results say which)" in done.stdout


def test_a_task_that_failed_in_a_job_that_calls_itself_fine_counts(user, job):
    (user.results / "summary.json").write_text(json.dumps({"gsm8k": "failed(1)"}))
    assert user("jobs", "wait", job("COMPLETED")).returncode == 1


def test_giving_up_on_a_job_has_its_own_code(user, job):
    assert user("jobs", "wait", "--timeout", "0.1", job("RUNNING")).returncode == 124


def test_cancel(user, slurm, job):
    running, done = job("RUNNING"), job("COMPLETED", "other")
    said = user("jobs", "cancel", running, done)
    assert f"{running} was asked to stop" in said.stdout
    assert f"{done} has ended already: completed" in said.stdout
    assert slurm.job(1)["state"] == "CANCELLED"
    assert user("jobs", "wait", running).returncode == 75


def test_cancel_when_slurm_gives_no_answer(user, slurm, job):
    running = job("RUNNING")
    slurm.turn(controller="down")
    said = user("jobs", "cancel", running)
    assert (said.returncode, said.stdout) == (1, "")
    assert f"{running} could not be asked to stop" in said.stderr
    assert "try again" in said.stderr


def test_logs(user, job):
    running = job("RUNNING")
    (user.folder / "mine/job.log").write_text("one\ntwo\n")
    assert user("jobs", "logs", running).stdout == "one\ntwo\n"


def test_no_log_yet_says_why(user, job):
    done = user("jobs", "logs", job("PENDING", reason="Resources"))
    assert (done.returncode, done.stdout) == (0, "")
    assert "has printed nothing: queued (waits for free nodes)" in done.stderr


def test_progress_is_read_where_the_results_are(user, job):
    running = job("RUNNING")
    progress = {"state": "running", "task": None, "tasks_done": 1, "tasks_total": 2, "updated": "now"}
    (user.results / "progress.json").write_text(json.dumps(progress))
    assert json.loads(user("jobs", "status", running, "--json").stdout)["progress"] == progress
    assert "running: 1 of 2 tasks" in user("jobs", "status", running).stdout
