"""Why a job waits, and why it ended, in words that lead somewhere."""

import json
import time
from pathlib import Path

import pytest

from nemotron.job import Phase
from nemotron.slurm.queue import states_of
from nemotron.slurm.reasons import waiting


@pytest.fixture
def state(session):
    return lambda ref: states_of(session, [ref])[ref]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Priority", "behind jobs of higher priority"),
        ("Resources", "free nodes"),
        ("BeginTime", "after a restart"),
        ("JobHeldUser", "`scontrol release 7`"),
        ("(JobHeldAdmin)", "administrator"),
        ("launch failed requeued held", "could not start it; held: `scontrol release 7`"),
        ("launch_failed_requeued_held", "could not start it"),
        ("ReqNodeNotAvail, UnavailableNodes:n[1-3]", "down, drained or reserved (UnavailableNodes:n[1-3])"),
        ("QOSMaxJobsPerUserLimit", "a limit of the QOS on jobs of one user at a time (QOSMaxJobsPerUserLimit)"),
        ("AssocGrpCpuLimit", "a limit of your account on CPUs of all users"),
        ("AssocGrpCPUMinutesLimit", "a limit of your account on CPUs of all users"),
        ("AssocMaxJobsLimit", "a limit of your account on jobs at a time"),
        ("QOSGrpNodeLimit", "a limit of the QOS on nodes of all users"),
        ("QOSMaxWallDurationPerJobLimit", "lower time in the profile"),
        ("AssocInventedLimit", "a limit of your account (AssocInventedLimit)"),
        ("PartitionTimeLimit", "time in the profile is above"),
        ("DependencyNeverSatisfied", "will never start"),
        ("SomethingNew", "SomethingNew"),
        ("", ""),
    ],
)
def test_a_reason_of_waiting(reason, words):
    assert words in waiting("PENDING", reason, "7")


def test_a_held_job_says_so_even_without_a_reason():
    assert "`scontrol release 7`" in waiting("REQUEUE_HOLD", "", "7")


@pytest.mark.parametrize(
    ("word", "phase", "words"),
    [
        ("OUT_OF_MEMORY", Phase.FAILED, "out of memory: raise mem in the profile"),
        ("TIMEOUT", Phase.STOPPED, "time limit was up"),
        ("DEADLINE", Phase.STOPPED, "deadline"),
        ("NODE_FAIL", Phase.STOPPED, "its node failed"),
        ("BOOT_FAIL", Phase.STOPPED, "did not boot"),
        ("PREEMPTED", Phase.STOPPED, "higher priority"),
    ],
)
@pytest.mark.parametrize("accounting", ["on", "off"])
def test_an_end_that_has_a_name(fake, job, state, word, phase, words, accounting):
    fake.turn(accounting=accounting)
    found = state(job(word))
    assert (found.phase, found.exit_code) == (phase, None)
    assert words in found.reason


def test_memory_that_ran_out_in_a_step(job, state):
    found = state(job("FAILED", exit="1:0", steps={"batch": "FAILED", "0": "OUT_OF_MEMORY"}))
    assert (found.phase, found.reason) == (Phase.FAILED, "out of memory: raise mem in the profile")


def test_memory_that_ran_out_where_slurm_only_calls_it_killed(job, state):
    ref = job("FAILED", exit="0:9")
    last_words = "x" * 10_000 + "\nslurmstepd: error: StepId=1.batch exceeded memory limit (2 > 1), being killed\n"
    (Path(ref.folder) / "job.log").write_text(last_words)
    found = state(ref)
    assert (found.exit_code, found.reason) == (None, "out of memory: raise mem in the profile")


def test_killed_for_another_cause(job, state):
    ref = job("FAILED", exit="0:9")
    (Path(ref.folder) / "job.log").write_text("all is well\n")
    assert "killed by signal 9" in state(ref).reason


def test_cancelled_by_somebody_else(job, state):
    assert "cancelled by 4123; resume=true" in state(job("CANCELLED", by="4123", steps={"batch": "CANCELLED"})).reason


def test_cancelled_before_it_began(job, state):
    assert state(job("CANCELLED", by="4123")).reason == "cancelled by 4123 before it started"


def test_the_jobs_own_words_say_more_than_its_exit_code(job, state):
    ref = job("FAILED", exit="1:0")
    said = {"job_id": ref.job_id, "restarts": 0, "is_over": True, "exit_code": 1, "reason": "podman: no such image"}
    (Path(ref.folder) / "marker.json").write_text(json.dumps(said | {"updated": time.time()}))
    assert state(ref).reason == "podman: no such image"


@pytest.mark.parametrize(
    ("code", "words"), [(1, "a task failed"), (2, "refused"), (126, "could not be started"), (127, "not found")]
)
def test_an_exit_code_in_words(job, state, code, words):
    found = state(job("FAILED", exit=f"{code}:0"))
    assert (found.phase, found.exit_code) == (Phase.FAILED, code)
    assert words in found.reason


def test_a_failure_that_slurm_does_not_explain(job, state):
    found = state(job("FAILED"))
    assert (found.phase, found.exit_code) == (Phase.FAILED, None)
    assert "FAILED" in found.reason
