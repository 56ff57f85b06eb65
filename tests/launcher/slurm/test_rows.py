"""The tables of squeue and sacct, as sites print them."""

import time

import pytest

from nemotron.slurm.job_ref import JobRef
from nemotron.slurm.rows import SQUEUE_COLUMNS, accounted, is_job, queued

ROW = {"JobID": "12", "State": "RUNNING", "UserName": "me", "RestartCnt": "1", "exit_code": "0", "Name": "mine"}
LIFE = "12|COMPLETED|0:0|me|1000|1001|1002|None|mine"


def squeue_line(**cells):
    row = {"SubmitTime": "1000", "EndTime": "N/A", "Reason": "None"} | ROW | cells
    return "".join(row[name][:width].ljust(width) for name, width in SQUEUE_COLUMNS.items())


def squeue_row(**cells):
    return next(queued(squeue_line(**cells)))


def test_a_row_of_squeue():
    row = squeue_row(Reason="ReqNodeNotAvail, UnavailableNodes:n1")
    assert (row.job_id, row.state, row.user, row.restarts, row.name) == ("12", "RUNNING", "me", 1, "mine")
    assert (row.submitted, row.ended, row.reason) == (1000.0, None, "ReqNodeNotAvail, UnavailableNodes:n1")


def test_greetings_and_other_lines_are_passed_over():
    greeting = "Welcome to the cluster\n12 jobs are queued today\nCLUSTER: one\n\n"
    assert len(list(queued(f"{greeting}{squeue_line()}\nBye\n"))) == 1
    assert len(list(accounted(f"{greeting}{LIFE}\n|\n"))) == 1


@pytest.mark.parametrize(
    ("status", "code", "signal"),
    [("0", 0, 0), ("256", 1, 0), ("19200", 75, 0), ("9", 0, 9), ("4021", 15, 53), ("1:0", 1, 0), ("0:15", 0, 15)],
)
def test_an_exit_code_is_a_wait_status_or_written_out(status, code, signal):
    row = squeue_row(exit_code=status)
    assert (row.exit_code, row.signal) == (code, signal)


@pytest.mark.parametrize(
    ("state", "word", "by"),
    [
        ("CANCELLED by 1000", "CANCELLED", "1000"),
        ("CANCELLED", "CANCELLED", ""),
        ("CANCELLED+", "CANCELLED", ""),
        ("OUT_OF_ME+", "OUT_OF_ME", ""),
    ],
)
def test_a_state_of_accounting(state, word, by):
    life = next(accounted(LIFE.replace("COMPLETED", state)))
    assert (life.state, life.by) == (word, by)


def test_a_life_has_its_steps():
    first = "12|PREEMPTED|0:15|me|1000|1001|1002|None|mine\n12.batch|CANCELLED|0:15||1001|1001|1002||batch\n"
    second = f"{LIFE}\n12.batch|OUT_OF_MEMORY|0:125||1001|1001|1002||batch\n12.0|FAILED|1:0||1001|1001|1002||x|y\n"
    assert [life.steps for life in accounted(first + second)] == [("CANCELLED",), ("OUT_OF_MEMORY", "FAILED")]


def test_times_that_are_none():
    life = next(accounted("12|PENDING|0:0|me|1000|Unknown|Unknown|None|mine"))
    assert (life.started, life.ended) == (None, None)


def ref(submitted=1000.0):
    return JobRef("12", "me", "mine", submitted, "/folder")


def test_a_number_alone_is_not_the_job():
    assert is_job(squeue_row(), ref())
    assert not is_job(squeue_row(UserName="other"), ref())
    assert not is_job(squeue_row(Name="other"), ref())
    assert not is_job(squeue_row(JobID="13"), ref())
    assert not is_job(squeue_row(), ref(submitted=time.time()))


def test_accounting_has_no_name_for_a_job_in_its_first_seconds():
    assert is_job(next(accounted(LIFE.replace("mine", "allocation"))), ref())
    assert not is_job(next(accounted(LIFE.replace("mine", "allocation"))), ref(submitted=time.time()))
