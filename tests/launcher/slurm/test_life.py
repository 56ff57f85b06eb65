"""The life of a job as users meet it, on the fake cluster and on a real one."""

import getpass

import pytest

from nemotron.job import Phase
from nemotron.slurm.cancel import cancel
from nemotron.slurm.log import lines
from nemotron.slurm.queue import states_of

pytestmark = pytest.mark.timeout(300)
RUNS_ON = "sleep 600"


def test_a_job_that_is_fine(cluster):
    ref = cluster.submit("exit 0")
    state = cluster.ended(ref)
    assert (state.phase, state.exit_code, state.reason, state.restarts) == (Phase.COMPLETED, 0, "", 0)


def test_a_job_whose_task_failed(cluster):
    state = cluster.ended(cluster.submit("exit 1"))
    assert (state.phase, state.exit_code) == (Phase.FAILED, 1)
    assert "a task failed" in state.reason


def test_a_job_that_stopped_can_go_on(cluster):
    state = cluster.ended(cluster.submit("exit 75"))
    assert (state.phase, state.exit_code) == (Phase.STOPPED, 75)
    assert "resume=true" in state.reason


def test_a_job_that_was_killed(cluster):
    state = cluster.ended(cluster.submit("kill -9 $$"))
    assert (state.phase, state.exit_code) == (Phase.FAILED, 137)
    assert "killed by signal 9" in state.reason


def test_a_job_that_takes_more_memory_than_it_asked_for(cluster):
    takes = "print('begun', flush=True); x = bytearray(300 << 20); import time; time.sleep(600)"
    ref = cluster.submit(f'exec python3 -c "{takes}"', "--no-requeue")
    cluster.logged(ref, "begun")
    cluster.find_memory_exhausted(ref)
    state = cluster.ended(ref)
    assert (state.phase, state.reason) == (Phase.FAILED, "out of memory: raise mem in the profile")


def test_a_job_whose_log_cannot_be_written(cluster):
    state = cluster.ended(cluster.submit("exit 0", "--output=/not/there/job.log"))
    assert state.phase is Phase.FAILED
    assert "could not open the job's folder or log" in state.reason


def test_a_running_job_that_a_user_cancels(cluster):
    ref = cluster.submit(f"echo begun; exec {RUNS_ON}")
    cluster.logged(ref, "begun")
    assert cluster.state(ref).phase is Phase.RUNNING
    cancel(cluster.session, [ref])
    state = cluster.ended(ref)
    assert state.phase is Phase.STOPPED
    assert state.reason.startswith(f"cancelled by {getpass.getuser()}; resume=true")


def test_the_step_of_a_cancelled_job_may_write_its_summary(cluster):
    ref = cluster.submit("trap 'echo summary; exit 75' TERM\necho begun\nwhile :; do sleep 0.1; done")
    cluster.logged(ref, "begun")
    cancel(cluster.session, [ref])
    assert cluster.ended(ref).phase is Phase.STOPPED
    assert "summary" in cluster.log(ref)


def test_a_waiting_job_that_a_user_cancels(cluster):
    ref = cluster.submit("exit 0", "--hold")
    state = cluster.until(ref, lambda state: bool(state.reason))
    assert state.phase is Phase.QUEUED
    assert f"scontrol release {ref.job_id}" in state.reason
    cancel(cluster.session, [ref])
    state = cluster.ended(ref)
    assert (state.phase, state.reason) == (Phase.STOPPED, f"cancelled by {getpass.getuser()} before it started")


def test_a_job_that_has_ended_is_left_alone(cluster):
    ref = cluster.submit("exit 0")
    cluster.ended(ref)
    cancel(cluster.session, [ref])
    assert cluster.state(ref).phase is Phase.COMPLETED


def test_a_preempted_job_goes_on_by_itself(cluster):
    ref = cluster.submit(f'echo "life $SLURM_RESTART_COUNT"; [ -n "$SLURM_RESTART_COUNT" ] || exec {RUNS_ON}')
    cluster.logged(ref, "life")
    cluster.preempt(ref)
    state = cluster.ended(ref)
    assert (state.phase, state.restarts) == (Phase.COMPLETED, 1)
    printed = lines(cluster.session, f"{ref.folder}/job.log", False, lambda: True)
    assert [line for line in printed if line.startswith("life")] == ["life ", "life 1"]


def test_a_job_that_is_cancelled_while_it_waits_to_go_on(cluster):
    ref = cluster.submit(f"echo begun; exec {RUNS_ON}")
    cluster.logged(ref, "begun")
    cluster.preempt(ref, pause=60)
    cluster.until(ref, lambda state: state.phase is Phase.QUEUED)
    cancel(cluster.session, [ref])
    state = cluster.ended(ref)
    assert state.phase is Phase.STOPPED
    assert "cancelled" in state.reason


def test_a_log_is_followed_to_its_end(cluster):
    ref = cluster.submit("echo one; sleep 1; echo two; printf three")
    followed = lines(cluster.session, f"{ref.folder}/job.log", True, lambda: cluster.state(ref).phase.is_final)
    assert list(followed) == ["one", "two", "three"]


def test_many_jobs_are_asked_about_together(cluster):
    refs = [cluster.submit(f"exit {code}", name=f"job-{code}") for code in (0, 1, 2)]
    for ref in refs:
        cluster.ended(ref)
    assert [state.exit_code for state in states_of(cluster.session, refs).values()] == [0, 1, 2]
