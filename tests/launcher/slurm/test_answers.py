"""What sbatch answers."""

import pytest

from nemotron.errors import JobLimitReached, SubmitError
from nemotron.slurm.answers import ask, submitted
from nemotron.transport.base import Done

SCRIPT = b"#!/bin/sh\n"


@pytest.mark.parametrize(
    ("stdout", "job"),
    [
        ("12\n", ("12", "")),
        ("12;one\n", ("12", "one")),
        ("Welcome!\n2026 is a good year\n\n12;one\n", ("12", "one")),
        ("sbatch: your quota is 7\n12\nHave a nice day\n", ("12", "")),
    ],
)
def test_the_number_of_a_job(stdout, job):
    assert submitted(Done(0, stdout, "")) == job


@pytest.mark.parametrize("answer", [Done(1, "12\n", "sbatch: error: no"), Done(0, "Welcome\n", "")])
def test_no_number_is_no_job(answer):
    with pytest.raises(SubmitError, match="sbatch refuses"):
        submitted(answer)


def test_the_answer_of_a_real_program(fake, session):
    fake.turn(banner="Welcome\nto the cluster", cluster="one", next_id=41)
    assert submitted(ask(session, ["sbatch", "--parsable"], stdin=SCRIPT)) == ("41", "one")


@pytest.mark.parametrize("said", ["Slurm temporarily unable to accept job", "Slurm job queue full"])
def test_a_full_cluster_is_told_apart(said):
    with pytest.raises(JobLimitReached, match=said):
        submitted(
            Done(1, "", f"sbatch: error: {said}, sleeping and retrying\nsbatch: error: Batch job submission failed")
        )


def test_a_limit_of_jobs_is_told_apart(fake, session):
    fake.turn(max_submit=0)
    with pytest.raises(JobLimitReached, match=r"now \(AssocMaxSubmitJobLimit; Batch .*\): submit again when"):
        submitted(ask(session, ["sbatch", "--parsable"], stdin=SCRIPT))
