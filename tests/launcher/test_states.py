"""Jobs of many backends at once: who is asked, how often, and what one that is down hides."""

import json
import os
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from nemotron.job import Phase, Submission
from nemotron.jobs import all_records, remember
from nemotron.states import ask, cancel_all
from tests.fakes.slurm import FakeSlurm
from tests.launcher.slurm.clusters import refer
from tests.launcher.world import compiled

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def slurm(tmp_path):
    with FakeSlurm.at(tmp_path / "slurm") as slurm:
        yield slurm


@pytest.fixture
def environ(slurm, tmp_path):
    return slurm.environ(os.environ) | {"NEMOTRON_HOME": str(tmp_path)}


@pytest.fixture
def record(environ, tmp_path):
    """Of a submission to the backend that this profile names."""

    def make(submission, **profile):
        job = compiled(f"output_dir={tmp_path}/out", tasks=["a"], NEMOTRON_HOME=str(tmp_path))
        made = remember(job, submission, "mine", NOW)
        path = tmp_path / f"jobs/{made.id}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"profile": profile}))
        return replace(made, profile=profile)

    return make


@pytest.fixture
def slurm_job(slurm, record, tmp_path):
    def make(state, name="mine", **profile):
        ref = refer(slurm.add(name, state), name, tmp_path / name)
        return record(Submission("slurm", ref.job_id, ref.details), executor="slurm", **profile)

    return make


def ended(record, tmp_path, code):
    folder = tmp_path / f"local-{code}"
    folder.mkdir()
    (folder / "exit_code").write_text(f"{code}\n")
    return record(Submission("local", "1", {"folder": str(folder), "started": "1"}), executor="local")


def docker_job(record, tmp_path):
    details = {"name": "x", "folder": str(tmp_path / "none")}
    return record(Submission("docker", "1", details), executor="docker", docker_host=f"unix://{tmp_path}/none.sock")


def phases(answers):
    return [state.phase for state in answers.states.values()]


def test_all_jobs_of_a_cluster_are_asked_about_at_once_whatever_their_profiles_say(slurm, slurm_job, environ):
    records = [slurm_job("RUNNING", "a", partition="cpu"), slurm_job("PENDING", "b", partition="gpu")]
    assert phases(ask(records, environ)) == [Phase.RUNNING, Phase.QUEUED]
    assert len(slurm.calls("squeue")) == 1


def test_what_has_ended_is_never_asked_about_again(slurm, slurm_job, environ):
    first = ask([slurm_job("COMPLETED")], environ)
    slurm.turn(controller="down", accounting="down")
    assert ask(all_records(environ), environ).states == first.states
    assert len(slurm.calls("squeue")) == 1


def test_what_goes_on_is(slurm, slurm_job, environ):
    slurm_job("RUNNING")
    for _ in range(2):
        assert phases(ask(all_records(environ), environ)) == [Phase.RUNNING]
    assert len(slurm.calls("squeue")) == 2


def test_a_backend_that_is_down_hides_its_own_jobs_only(slurm_job, record, environ, tmp_path):
    records = [docker_job(record, tmp_path), docker_job(record, tmp_path), slurm_job("RUNNING")]
    answers = ask([*records, ended(record, tmp_path, 1)], environ)
    assert phases(answers) == [Phase.UNKNOWN, Phase.UNKNOWN, Phase.RUNNING, Phase.FAILED]
    assert answers.silent.keys() == {records[0].id, records[1].id}
    assert len(answers.warnings()) == 1
    assert "No container engine answers" in answers.warnings()[0]
    assert answers.warnings()[0].endswith("Its 2 jobs are unknown for now.")


def test_a_profile_that_this_version_cannot_read_is_shown_and_hides_nothing(slurm_job, record, environ):
    strange = record(Submission("slurm", "1", {}), executor="slurm", invented_key=1)
    answers = ask([strange, slurm_job("RUNNING")], environ)
    assert phases(answers) == [Phase.UNKNOWN, Phase.RUNNING]
    assert "invented_key" in answers.unreadable[strange.id]


def test_a_record_that_cannot_be_written_is_no_obstacle(slurm_job, environ, tmp_path):
    done = slurm_job("COMPLETED")
    nowhere = environ | {"NEMOTRON_HOME": str(tmp_path / "nowhere")}
    assert phases(ask([done], nowhere)) == [Phase.COMPLETED]


def test_the_slowest_backend_sets_the_pace(slurm_job, record, environ, tmp_path):
    slow = ask([slurm_job("RUNNING"), ended(record, tmp_path, 0)], environ).pace
    assert (slow.first, slow.longest) == (5.0, 30.0)


def test_cancelling_asks_each_backend_once_and_tells_who_refused(slurm, slurm_job, record, environ, tmp_path):
    running = [slurm_job("RUNNING", "a"), slurm_job("PENDING", "b")]
    unreachable = docker_job(record, tmp_path)
    asked, refused = cancel_all([unreachable, *running], environ)
    assert asked == running
    assert [refusal[0] for refusal in refused] == [unreachable]
    assert [job["state"] for job in slurm.jobs()] == ["CANCELLED", "CANCELLED"]
    assert len(slurm.calls("scancel")) == 1
