"""Waiting for jobs, with a clock that only the waiting moves."""

from datetime import UTC, datetime

import pytest

from nemotron.executors.base import Pace
from nemotron.job import JobState, Phase, Submission
from nemotron.jobs import Record
from nemotron.states import Answers
from nemotron.waiting import exit_code_of, wait_for, worst

PACE = Pace(first=5.0, longest=30.0)
SILENCE = "the cluster gives no answer"
UNREADABLE = "the record is strange"


def record(name="job"):
    now = datetime(2026, 1, 1, tzinfo=UTC).isoformat()
    return Record(name, name, now, "slurm", {"executor": "slurm"}, "/results", ("a",), Submission("slurm", "1"))


class Clock:
    def __init__(self):
        self.now, self.pauses = 0.0, []

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self.pauses.append(seconds)


class Backend:
    """Gives these answers one after the other, and the last one for ever; to one job, or to several by name."""

    def __init__(self, *answers, pace=PACE):
        self.left, self.pace, self.asked = list(answers), pace, []

    def __call__(self, records):
        self.asked.append([record.id for record in records])
        answer = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        by_name = answer if isinstance(answer, dict) else {record.id: answer for record in records}
        states = {record.id: self.state(by_name[record.id]) for record in records}
        silent = {name: SILENCE for name in states if by_name[name] == SILENCE}
        unreadable = {name: UNREADABLE for name in states if by_name[name] == UNREADABLE}
        return Answers(states, silent, unreadable, self.pace)

    @staticmethod
    def state(answer):
        return JobState(Phase.UNKNOWN if answer in (SILENCE, UNREADABLE) else answer)


def wait(*answers, records=None, timeout=None, pace=PACE):
    backend, clock, warnings = Backend(*answers, pace=pace), Clock(), []
    states = wait_for(records or [record()], backend, warnings.append, timeout=timeout, sleep=clock.sleep, clock=clock)
    return {name: state.phase for name, state in states.items()}, clock, backend, warnings


def test_waiting_ends_with_the_job():
    phases, _, backend, _ = wait(Phase.QUEUED, Phase.RUNNING, Phase.COMPLETED)
    assert phases == {"job": Phase.COMPLETED}
    assert len(backend.asked) == 3


def test_a_backend_is_asked_less_and_less_often_until_something_happens():
    _, clock, _, _ = wait(Phase.QUEUED, *[Phase.RUNNING] * 7, Phase.COMPLETED)
    assert clock.pauses == [5, 5, 7.5, 11.25, 16.875, 25.3125, 30, 30]


def test_what_has_ended_is_not_asked_about_again():
    first = {"a": Phase.COMPLETED, "b": Phase.RUNNING}
    phases, _, backend, _ = wait(first, {"b": Phase.FAILED}, records=[record("a"), record("b")])
    assert phases == {"a": Phase.COMPLETED, "b": Phase.FAILED}
    assert backend.asked == [["a", "b"], ["b"]]


def test_an_unknown_state_is_not_the_end():
    phases, *_ = wait(Phase.RUNNING, Phase.UNKNOWN, Phase.UNKNOWN, Phase.COMPLETED)
    assert phases == {"job": Phase.COMPLETED}


def test_a_state_that_stays_unknown_is_not_waited_for_for_ever():
    phases, clock, *_ = wait(Phase.RUNNING, Phase.UNKNOWN, pace=Pace(1.0, 1.0))
    assert (phases, clock.now) == ({"job": Phase.UNKNOWN}, 61)


def test_a_backend_that_is_down_for_half_an_hour_does_not_end_the_waiting():
    phases, clock, _, warnings = wait(Phase.RUNNING, *[SILENCE] * 60, Phase.UNKNOWN, Phase.COMPLETED)
    assert phases == {"job": Phase.COMPLETED}
    assert clock.now > 1600
    assert warnings == ["the cluster gives no answer Its job is unknown for now."]


def test_a_backend_that_is_down_for_good_does():
    phases, clock, *_ = wait(SILENCE)
    assert phases == {"job": Phase.UNKNOWN}
    assert 3600 <= clock.now <= 3630


def test_a_record_that_cannot_be_read_is_not_waited_for():
    phases, clock, _, warnings = wait(UNREADABLE)
    assert (phases, clock.now) == ({"job": Phase.UNKNOWN}, 0)
    assert len(warnings) == 1


def test_patience_can_be_limited():
    phases, clock, *_ = wait(Phase.RUNNING, timeout=7)
    assert (phases, clock.now) == ({"job": Phase.RUNNING}, 7)


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (JobState(Phase.COMPLETED, 0), 0),
        (JobState.of_exit(1), 1),
        (JobState.of_exit(2), 2),
        (JobState.of_exit(75), 75),
        (JobState.of_exit(130), 75),
        (JobState.of_exit(137), 1),
        (JobState(Phase.FAILED, None), 1),
        (JobState(Phase.UNKNOWN), 1),
    ],
)
def test_a_state_is_an_exit_code(state, code):
    assert exit_code_of(state, {}, ("a", "b")) == code


def test_a_failed_task_is_not_overlooked_in_a_job_that_calls_itself_fine():
    assert exit_code_of(JobState(Phase.COMPLETED, 0), {"a": "ok", "b": "failed(1)"}, ("a", "b")) == 1


@pytest.mark.parametrize(("codes", "code"), [([], 0), ([0, 75], 75), ([75, 1, 0], 1), ([1, 2, 75], 2)])
def test_of_several_jobs_the_worst_counts(codes, code):
    assert worst(codes) == code
