"""Records of jobs."""

import json
from datetime import UTC, datetime

import pytest

from nemotron.errors import UsageError
from nemotron.job import JobState, Phase, Submission
from nemotron.jobs import Record, all_records, find_record, remember, settle
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


def test_of_two_jobs_within_a_second_the_later_one_is_the_latest(tmp_path):
    environ = {"NEMOTRON_HOME": str(tmp_path)}
    job = compiled(f"output_dir={tmp_path}/out", **environ)
    later = None
    for milliseconds in range(8):
        now = datetime(2026, 1, 1, microsecond=1000 * milliseconds, tzinfo=UTC)
        later = remember(job, Submission("local", str(milliseconds)), "local", now)
    assert find_record(None, environ) == later


def test_a_beginning_of_several_is_refused(remembered, tmp_path):
    remembered(0), remembered(1)
    with pytest.raises(UsageError, match="begins 2 jobs"):
        find_record("2026", {"NEMOTRON_HOME": str(tmp_path)})


def test_how_a_job_ended_is_kept_for_good(remembered, tmp_path):
    environ = {"NEMOTRON_HOME": str(tmp_path)}
    state = JobState(Phase.FAILED, 1, "a task failed", 2)
    settled = settle(remembered(0), state, environ)
    assert all_records(environ) == [settled]
    assert settled.final == state


def test_a_record_of_a_later_version_is_read_as_far_as_it_is_known(remembered, tmp_path):
    record = remembered(0)
    path = tmp_path / f"jobs/{record.id}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"invented_later": 1}))
    assert all_records({"NEMOTRON_HOME": str(tmp_path)}) == [record]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"id": "x"}', '{"id": 1, "tasks": null}'])
def test_what_is_no_record_hides_no_other(remembered, tmp_path, content):
    record = remembered(0)
    (tmp_path / "jobs/20260101-000000-ffff.json").write_text(content)
    assert all_records({"NEMOTRON_HOME": str(tmp_path)}) == [record]
