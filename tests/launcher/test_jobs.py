"""Records of jobs, and waiting for them."""

import json
from datetime import UTC, datetime

import pytest

from nemotron.errors import UsageError
from nemotron.job import JobState, Phase, Submission
from nemotron.jobs import Record, all_records, exit_code_of, find_record, remember, wait_for, worst
from tests.launcher.world import TOKEN, compiled


@pytest.fixture
def remembered(tmp_path):
    def remember_job(second: int) -> Record:
        job = compiled(f"output_dir={tmp_path}/out", tasks=["a", "b"], NEMOTRON_HOME=str(tmp_path))
        return remember(job, Submission("local", "1"), "local", datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC))

    return remember_job


def test_a_record_comes_back_as_it_was(remembered, tmp_path):
    record = remembered(0)
    assert all_records({"NEMOTRON_HOME": str(tmp_path)}) == [record]


def test_it_holds_no_secret(remembered, tmp_path):
    remembered(0)
    assert not [path for path in tmp_path.rglob("*.json") if TOKEN in path.read_text()]


def test_a_job_is_found_by_its_beginning_and_the_latest_without_a_name(remembered, tmp_path):
    first, second = remembered(0), remembered(1)
    environ = {"NEMOTRON_HOME": str(tmp_path)}
    assert find_record(first.id[:15], environ) == first
    assert find_record(None, environ) == second


def test_a_beginning_of_several_is_refused(remembered, tmp_path):
    remembered(0), remembered(1)
    with pytest.raises(UsageError, match="begins 2 jobs"):
        find_record("2026", {"NEMOTRON_HOME": str(tmp_path)})


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
    ],
)
def test_a_state_is_an_exit_code(remembered, state, code):
    assert exit_code_of(remembered(0), state) == code


def test_a_failed_task_is_not_overlooked_in_a_job_that_calls_itself_fine(remembered, tmp_path):
    record = remembered(0)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/summary.json").write_text(json.dumps({"a": "ok", "b": "failed(1)"}))
    assert exit_code_of(record, JobState(Phase.COMPLETED, 0)) == 1


@pytest.mark.parametrize(("codes", "code"), [([], 0), ([0, 75], 75), ([75, 1, 0], 1), ([1, 2, 75], 2)])
def test_of_several_jobs_the_worst_counts(codes, code):
    assert worst(codes) == code


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def wait(record, *phases, timeout=None):
    """The backend says these one after the other, and the last one for ever; also how long it took."""
    clock, left = Clock(), list(phases)
    states = wait_for(
        [record],
        lambda _: JobState(left.pop(0) if len(left) > 1 else left[0]),
        timeout=timeout,
        sleep=clock.sleep,
        clock=clock,
    )
    return states[record.id].phase, clock.now


def test_waiting_ends_with_the_job(remembered):
    assert wait(remembered(0), Phase.QUEUED, Phase.RUNNING, Phase.COMPLETED) == (Phase.COMPLETED, 2)


def test_an_unknown_state_is_not_the_end(remembered):
    assert wait(remembered(0), Phase.RUNNING, Phase.UNKNOWN, Phase.UNKNOWN, Phase.COMPLETED) == (Phase.COMPLETED, 3)


def test_a_state_that_stays_unknown_is_not_waited_for_for_ever(remembered):
    assert wait(remembered(0), Phase.RUNNING, Phase.UNKNOWN) == (Phase.UNKNOWN, 60)


def test_patience_can_be_limited(remembered):
    assert wait(remembered(0), Phase.RUNNING, timeout=5) == (Phase.RUNNING, 5)
