"""Cancelling the jobs that are meant, and no others."""

from pathlib import Path

import pytest

from nemotron.errors import SubmitError
from nemotron.slurm.cancel import cancel


def word(fake, ref):
    return fake.job(int(ref.job_id))["state"]


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "SUSPENDED"])
def test_a_job_that_is_there(fake, job, session, state):
    ref = job(state)
    cancel(session, [ref])
    assert word(fake, ref) == "CANCELLED"


def test_its_step_knows_before_the_signal_comes(job, session):
    ref = job("RUNNING")
    cancel(session, [ref])
    assert (Path(ref.folder) / "cancelled").exists()


def test_a_folder_that_cannot_be_written_is_no_obstacle(fake, job, session):
    ref = job("RUNNING")
    Path(ref.folder).rmdir()
    Path(ref.folder).write_text("a file")
    cancel(session, [ref])
    assert word(fake, ref) == "CANCELLED"


def test_many_at_once(fake, job, session):
    refs = [job("RUNNING", name=f"job-{number}") for number in range(5)]
    cancel(session, refs)
    assert [word(fake, ref) for ref in refs] == ["CANCELLED"] * 5
    assert (len(fake.calls("squeue")), len(fake.calls("scancel"))) == (1, 1)


def test_another_job_with_the_same_number_is_left_alone(fake, job, session):
    ours = job("COMPLETED", id=7)
    fake.forget(7)
    fake.add("another", "RUNNING", id=7)
    cancel(session, [ours])
    assert fake.job(7)["state"] == "RUNNING"
    assert not fake.calls("scancel")


def test_slurm_is_told_whose_job_it_is(fake, job, session):
    ref = job("RUNNING")
    cancel(session, [ref])
    assert fake.calls("scancel")[0].argv == [f"--user={ref.user}", ref.job_id]


def test_one_that_has_ended_is_left_alone(fake, job, session):
    cancel(session, [job("COMPLETED")])
    assert not fake.calls("scancel")


def test_one_that_ends_at_this_moment_is_no_error(fake, job, session):
    fake.says("scancel", stderr="scancel: error: Kill job error on job id 1: Invalid job id specified\n", code=1)
    cancel(session, [job("RUNNING")])


def test_a_controller_that_is_down_is(fake, job, session):
    ref = job("RUNNING")
    fake.turn(controller="down")
    with pytest.raises(SubmitError, match=r"Unable to contact slurm controller.*try again"):
        cancel(session, [ref])


def test_so_is_a_refusal(fake, job, session):
    fake.says("scancel", stderr="scancel: error: Kill job error on job id 1: Access/permission denied\n", code=1)
    with pytest.raises(SubmitError, match="Access/permission denied"):
        cancel(session, [job("RUNNING")])
