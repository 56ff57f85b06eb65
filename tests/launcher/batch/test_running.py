"""Whole jobs on a cluster: `nemotron` as a user runs it, batch steps as processes, a fake harness."""

import json
import signal
import subprocess

import pytest

from tests.fakes.slurm import FakeSlurm
from tests.launcher.batch.node import PATIENCE, wait_until
from tests.launcher.world import TOKEN

pytestmark = pytest.mark.timeout(600)

QUICK = json.dumps({"gsm8k": []})
SLOW = json.dumps({"gsm8k": [{"sleep": 600}]})
ON_CLUSTER = ("--batch", "cluster", "-t", "gsm8k")


@pytest.fixture
def slurm(tmp_path):
    with FakeSlurm.at(tmp_path / "slurm") as slurm:
        slurm.turn(runs=True, kill_wait=20.0)
        yield slurm


@pytest.fixture
def cluster_user(user, slurm):
    """Has a profile for the cluster, whose nodes have the user's (fake) harness."""
    (user.folder / "env.toml").write_text(
        f'[cluster]\nexecutor = "slurm"\ncontainer_runtime = "none"\ntime = "00:10:00"\n'
        f'remote_job_dir = "{user.folder}/jobs"\npython = "{user.folder}/harness/bin/python"\n'
        "env_vars.FAKE_HARNESS = \"${oc.env:FAKE_HARNESS,''}\"\n"
    )
    user.environ = slurm.environ(user.environ)
    return user


def job_number(user) -> int:
    wait_until(lambda: json.loads(user("jobs", "list", "--json").stdout))
    return int(json.loads(user("jobs", "list", "--json").stdout)[0]["backend_id"])


def harness_is_at_work(user) -> bool:
    return (user.results / "gsm8k/harness.log").exists()


def log_of_the_job(user) -> str:
    return "".join(path.read_text() for path in (user.folder / "jobs").glob("*/job.log"))


def test_a_batch_job_runs_to_its_end(cluster_user, slurm):
    done = cluster_user.evaluate(*ON_CLUSTER, FAKE_HARNESS=QUICK)
    assert done.returncode == 0, done.stderr
    assert slurm.wait(job_number(cluster_user), "COMPLETED", "FAILED")["state"] == "COMPLETED", log_of_the_job(
        cluster_user
    )
    assert cluster_user.summary() == {"gsm8k": "ok"}


def test_an_attached_job_shows_its_log_and_ends_with_the_runners_code(cluster_user, slurm):
    failing = json.dumps({"gsm8k": [{"exit": 3}]})
    done = cluster_user.evaluate("--run", "cluster", "-t", "gsm8k", FAKE_HARNESS=failing)
    assert done.returncode == 1, done.stderr
    assert "gsm8k: failed(3)" in done.stdout and "Submitted job 1" in done.stderr
    assert TOKEN not in done.stdout + done.stderr


def test_ctrl_c_cancels_an_attached_job(cluster_user, slurm):
    process = cluster_user.start(
        "steps", "run", "eval/model_eval", "preflight=false", "--run", "cluster", "-t", "gsm8k", FAKE_HARNESS=SLOW
    )
    try:
        wait_until(lambda: harness_is_at_work(cluster_user))
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 75, said
    assert slurm.job(1)["state"] == "CANCELLED"


def test_whoever_is_told_twice_leaves_the_end_to_slurm(cluster_user, slurm):
    slurm.turn(kill_wait=5.0)
    deaf = json.dumps({"gsm8k": [{"ignore_term": True}, {"sleep": 600}]})
    process = cluster_user.start(
        "steps", "run", "eval/model_eval", "preflight=false", "--run", "cluster", "-t", "gsm8k", FAKE_HARNESS=deaf
    )
    try:
        wait_until(lambda: harness_is_at_work(cluster_user))
        process.send_signal(signal.SIGINT)
        wait_until(lambda: slurm.job(1)["state"] in ("COMPLETING", "CANCELLED"))
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert process.returncode in (75, 130) and "Traceback" not in said, said
    assert slurm.wait(1, "CANCELLED")["state"] == "CANCELLED"


def test_a_job_goes_on_when_slurm_says_that_its_time_is_up_and_asks_nothing_twice(cluster_user, slurm):
    cluster_user.evaluate(*ON_CLUSTER, FAKE_HARNESS=json.dumps({"gsm8k": [{"answer": 150}]}))
    wait_until(lambda: "asked 5" in log_of_the_job(cluster_user))
    subprocess.run(["scancel", "--batch", "--signal=USR2", "1"], env=slurm.environ(), check=True)
    assert goes_on_to_its_end(slurm, cluster_user, answers=150)
    assert "1 of 3 times" in log_of_the_job(cluster_user)


def test_a_preempted_job_goes_on_and_asks_nothing_twice(cluster_user, slurm):
    cluster_user.evaluate(*ON_CLUSTER, FAKE_HARNESS=json.dumps({"gsm8k": [{"answer": 150}]}))
    wait_until(lambda: "asked 5" in log_of_the_job(cluster_user))
    slurm.preempt(1)
    assert goes_on_to_its_end(slurm, cluster_user, answers=150)


def goes_on_to_its_end(slurm, user, answers) -> bool:
    job = slurm.wait(1, "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED")
    log = log_of_the_job(user)
    assert job["state"] == "COMPLETED" and job["restarts"] >= 1, log
    asked = [line for line in log.splitlines() if line.startswith("asked ")]
    assert len(asked) == len(set(asked)) == answers
    return bool(user.summary() == {"gsm8k": "ok"})
