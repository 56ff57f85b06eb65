"""What runners say of themselves, wherever their folders are."""

import json

from nemotron.job import Submission
from nemotron.reports import Report, reports_of
from tests.launcher.test_states import environ, record, slurm, slurm_job

__all__ = ["environ", "record", "slurm", "slurm_job"]
PROGRESS, SUMMARY = {"state": "running", "tasks_done": 1}, {"a": "ok"}


def write(tmp_path, progress=PROGRESS):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/progress.json").write_text(progress if isinstance(progress, str) else json.dumps(progress))
    (tmp_path / "out/summary.json").write_text(json.dumps(SUMMARY))


def test_a_job_of_a_cluster(slurm_job, environ, tmp_path):
    write(tmp_path)
    jobs = [slurm_job("RUNNING"), slurm_job("COMPLETED", "other")]
    assert reports_of(jobs, environ) == {job.id: Report(PROGRESS, SUMMARY) for job in jobs}


def test_a_job_of_this_machine(record, environ, tmp_path):
    write(tmp_path)
    job = record(Submission("local", "1", {"folder": "/none", "started": "1"}), executor="local")
    assert reports_of([job], environ) == {job.id: Report(PROGRESS, SUMMARY)}


def test_a_runner_that_has_said_nothing_yet(slurm_job, environ):
    job = slurm_job("RUNNING")
    assert reports_of([job], environ) == {job.id: Report()}


def test_half_a_file_says_nothing(slurm_job, environ, tmp_path):
    write(tmp_path, progress='{"state": "runn')
    job = slurm_job("RUNNING")
    assert reports_of([job], environ) == {job.id: Report({}, SUMMARY)}


def test_a_profile_that_this_version_cannot_read(record, environ):
    job = record(Submission("slurm", "1", {}), executor="slurm", invented_key=1)
    assert reports_of([job], environ) == {job.id: Report()}
