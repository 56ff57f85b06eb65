"""`nemotron jobs fetch` as a user runs it, from a cluster behind SSH."""

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nemotron.job import Submission
from nemotron.jobs import remember
from nemotron.profiles import NamedProfile
from tests.launcher.transport.ssh_world import SshWorld
from tests.launcher.world import compiled

RESULTS = """\
results:
  tasks:
    gsm8k:
      metrics:
        exact_match: {scores: {exact_match: {value: 0.5, stats: {stderr: 0.1, count: 100}}}}
"""


class Cluster:
    """Jobs that have left something on a login node; submitted by `user`."""

    def __init__(self, user, folder: Path) -> None:
        self.world = SshWorld(user.folder)
        self.server = self.world.server("login")
        self._user, self._folder = user, folder / "cluster"

    def job(self, number: int, *, has_results: bool = True, **profile: str) -> str:
        results, own = self._folder / f"results-{number}", self._folder / f"job-{number}"
        own.mkdir(parents=True)
        for name in ("job.log", "job.sh", "plan.json", "step.json", "marker.json", "runner.pyz", "secrets.sealed"):
            (own / name).write_text(f"{name} {number}")
        (own / "plan.json").write_text(json.dumps({"output_dir": str(results)}))
        if has_results:
            (results / "gsm8k").mkdir(parents=True)
            (results / "summary.json").write_text(json.dumps({"gsm8k": "ok"}))
            (results / "gsm8k/results.yml").write_text(RESULTS)
        for path in self._folder.rglob("*"):
            os.utime(path, (1_700_000_000, 1_700_000_000))
        said = {"executor": "slurm", "tunnel": "ssh", "host": "login", **profile}
        job = compiled(
            tasks=["gsm8k"],
            profile=NamedProfile("cluster", "[cluster]", said),
            **self._user.environ | {"EVAL_RESULTS_DIR": str(results)},
        )
        details = {"user": "me", "name": f"n-{number}", "submitted": "1.0", "folder": str(own)}
        submission = Submission("slurm", str(number), details)
        return remember(job, submission, "cluster", datetime(2026, 1, 1, 0, 0, number, tzinfo=UTC)).id


@pytest.fixture
def cluster(user, tmp_path):
    cluster = Cluster(user, tmp_path)
    yield cluster
    cluster.world.close()


def test_results_and_logs_come_into_a_folder_of_the_jobs_name(user, cluster):
    job = cluster.job(1)
    done = user("jobs", "fetch")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "gsm8k: ok" and lines[-1] == str(user.folder / job)
    assert "gsm8k  exact_match  0.5000  0.1000  100" in lines
    assert re.fullmatch(r"7 files, \d+ B from me@login; 0 were here\n", done.stderr)
    assert sorted(path.name for path in (user.folder / job / "job-1").iterdir()) == [
        "job.log", "job.sh", "marker.json", "plan.json", "step.json"
    ]  # fmt: skip
    assert (user.folder / job / "gsm8k/results.yml").read_text() == RESULTS


def test_again_it_only_looks(user, cluster):
    job = cluster.job(1)
    for _ in range(2):
        done = user("jobs", "fetch", job, "--to", "here")
    assert done.stdout.splitlines()[-1] == str(user.folder / "here")
    assert "0 files, 0 B from me@login; 7 were here" in done.stderr
    assert not (user.folder / "here/.fetching").exists()


def test_several_jobs_come_over_one_connection_each_into_its_own_folder(user, cluster):
    jobs = [cluster.job(number) for number in (1, 2)]
    done = user("jobs", "fetch", *jobs, "--to", "all")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in sorted((user.folder / "all").iterdir())] == jobs
    assert cluster.server.connections == 1


def test_results_of_different_folders_do_not_become_a_mixture(user, cluster):
    first, second = cluster.job(1), cluster.job(2)
    assert user("jobs", "fetch", first, "--to", "here").returncode == 0
    done = user("jobs", "fetch", second, "--to", "here")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "results-1 already" in done.stderr and f"job {second}" in done.stderr
    assert [path.name for path in (user.folder / "here").glob("job-*")] == ["job-1"]


def test_one_without_results_is_told_and_keeps_no_other_away(user, cluster):
    jobs = [cluster.job(1, has_results=False), cluster.job(2)]
    done = user("jobs", "fetch", *jobs)
    assert done.returncode == 1
    assert f"Job {jobs[0]} has no results yet at " in done.stderr and "Its log is in " in done.stderr
    assert (user.folder / jobs[0] / "job-1/job.log").exists()
    assert (user.folder / jobs[1] / "summary.json").exists()


def test_a_login_node_that_is_out_of_reach_is_one_line(user, cluster):
    cluster.job(1)
    cluster.server.close()
    done = user("jobs", "fetch")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("Error: me@login cannot be reached") and done.stderr.count("\n") == 1


def test_results_on_this_machine_need_no_copy(user, cluster):
    cluster.job(1, tunnel="local")
    done = user("jobs", "fetch")
    assert done.returncode == 0 and "gsm8k: ok" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("cluster/results-1") and "already" in done.stderr
    assert cluster.server.connections == 0


def test_results_that_are_not_on_this_machine_yet_are_not_said_to_be(user, cluster):
    job = cluster.job(1, has_results=False, tunnel="local")
    done = user("jobs", "fetch")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith(f"Error: Job {job} has no results yet at ") and done.stderr.count("\n") == 1


def test_results_on_this_machine_are_copied_where_that_is_asked_for(user, cluster):
    cluster.job(1, tunnel="local")
    done = user("jobs", "fetch", "--to", "copy")
    assert done.returncode == 0 and (user.folder / "copy/gsm8k/results.yml").exists()
