"""A sweep on a cluster that has its limits and its moods."""

import json

import pytest

from tests.fakes.slurm import FakeSlurm
from tests.launcher.slurm.answers import teach

MODELS = "target.api_endpoint.model_id=a,b,c"


@pytest.fixture
def slurm(tmp_path):
    with FakeSlurm.at(tmp_path / "slurm") as slurm:
        teach(slurm)
        yield slurm


@pytest.fixture
def sweep(user, slurm, tmp_path):
    """Submits; no job ever begins."""
    (user.folder / "env.toml").write_text(
        f'[cluster]\nexecutor = "slurm"\ncontainer_runtime = "none"\nremote_job_dir = "{tmp_path}/jobs"\n'
    )
    user.environ = slurm.environ(user.environ)

    def run(*words: str, code: int = 0):
        done = user.evaluate("-b", "cluster", "-t", "gsm8k", "-m", "--json", *words)
        assert done.returncode == code, done.stderr
        return {point["point"]: point for point in json.loads(done.stdout)["points"]}

    return run


def fates(points) -> list[str]:
    return [point["fate"] for point in points.values()]


def test_what_does_not_fit_is_left_and_goes_on_with_the_same_command(sweep, slurm):
    slurm.turn(max_submit=2)
    first = sweep(MODELS, code=1)
    assert fates(first) == ["submitted", "submitted", "left"] and "no more jobs" in first["c"]["detail"]
    slurm.become(int(first["a"]["job"]["backend_id"]), "COMPLETED")
    assert fates(sweep(MODELS)) == ["kept", "kept", "submitted"]


def test_a_point_that_is_refused_does_not_stop_those_after_it(sweep, slurm):
    slurm.says("sbatch", stderr="sbatch: error: Invalid feature specification\n", code=1, when="eval-direct-b")
    points = sweep(MODELS, code=1)
    assert fates(points) == ["submitted", "failed", "submitted"]
    assert "Invalid feature specification" in points["b"]["detail"]


def test_all_jobs_are_asked_for_in_one_question_and_cancelled_in_one(sweep, slurm, user):
    sweep(MODELS)
    before = len(slurm.calls("squeue"))
    states = json.loads(user("jobs", "status", "--sweep", "--json").stdout)["points"]
    assert [state["phase"] for state in states] == ["queued"] * 3
    assert len(slurm.calls("squeue")) - before == 1
    assert user("jobs", "cancel", "--sweep").returncode == 0
    assert len(slurm.calls("scancel")) == 1 and {job["state"] for job in slurm.jobs()} == {"CANCELLED"}


def test_the_cluster_is_asked_once_what_it_can_give(sweep, slurm, user):
    done = user(
        "steps", "run", "eval/model_eval", "-b", "cluster", "-t", "gsm8k", "-m", MODELS, "run.env.time=05:00:00"
    )
    assert done.returncode == 1 and done.stderr.count("above the limit of partition cpu") == 3
    assert slurm.jobs() == [] and len(slurm.calls("sinfo")) == 1
