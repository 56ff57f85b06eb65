"""The lock: who holds it, and that it beats. When it is refused is in test_refusals."""

import json
import os
import signal
import time

import pytest

from nemo_evaluator.direct.claim import Claim, job_id
from nemo_evaluator.direct.errors import Refused
from tests.harness.direct.world import wait_for

LOCK = ".nemotron-eval.lock"


def test_it_names_its_owner_and_is_gone_afterwards(tmp_path):
    with Claim(tmp_path, "slurm:7", resume=False):
        owner = json.loads((tmp_path / LOCK).read_text())
    assert owner["pid"] == os.getpid() and owner["job"] == "slurm:7"
    assert {"host", "started", "heartbeat"} <= owner.keys()
    assert list(tmp_path.iterdir()) == []


def test_its_heart_beats(tmp_path):
    with Claim(tmp_path, None, resume=False, heartbeat_seconds=0.05):
        first = json.loads((tmp_path / LOCK).read_text())["heartbeat_unix"]
        wait_for(lambda: json.loads((tmp_path / LOCK).read_text())["heartbeat_unix"] > first)


def test_a_second_one_is_refused_and_leaves_the_first_alone(tmp_path):
    with Claim(tmp_path, None, resume=False):
        before = (tmp_path / LOCK).read_bytes()
        with pytest.raises(Refused):
            Claim(tmp_path, None, resume=True)
        assert (tmp_path / LOCK).read_bytes() == before


def test_a_stale_one_is_taken_over_with_resume(tmp_path):
    stale = {"pid": 1, "host": "node7", "machine": "node7", "job": None, "heartbeat_unix": time.time() - 400}
    (tmp_path / LOCK).write_text(json.dumps(stale))
    with Claim(tmp_path, None, resume=True):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()


def test_one_that_was_taken_over_is_not_removed_by_its_old_owner(tmp_path):
    with Claim(tmp_path, None, resume=False):
        (tmp_path / LOCK).write_text(json.dumps({"pid": 1, "pid_started": "1", "machine": "node7"}))
    assert json.loads((tmp_path / LOCK).read_text())["pid"] == 1


def test_who_was_taken_over_while_frozen_stops(tmp_path):
    told = []
    before = signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    successor = json.dumps({"pid": 1, "pid_started": "1", "machine": "node7"})
    with Claim(tmp_path, None, resume=False, heartbeat_seconds=0.05):
        (tmp_path / LOCK).write_text(successor)
        wait_for(lambda: told)
    signal.signal(signal.SIGTERM, before)
    assert (tmp_path / LOCK).read_text() == successor


def test_a_lock_that_somebody_removed_comes_back(tmp_path):
    with Claim(tmp_path, None, resume=False, heartbeat_seconds=0.05):
        (tmp_path / LOCK).unlink()
        wait_for((tmp_path / LOCK).exists)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}'])
def test_a_lock_that_says_nothing_is_no_claim(tmp_path, text):
    (tmp_path / LOCK).write_text(text)
    with Claim(tmp_path, None, resume=True):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()


@pytest.mark.parametrize(
    ("environ", "job"),
    [
        ({}, None),
        ({"SLURM_JOB_ID": "7"}, "slurm:7"),
        ({"SLURM_JOB_ID": "7", "SLURM_CLUSTER_NAME": "east"}, "slurm:east:7"),
        ({"LEPTON_JOB_NAME": "eval-1"}, "lepton:eval-1"),
        ({"RUNAI_JOB_NAME": "eval-1"}, "runai:eval-1"),
    ],
)
def test_jobs_are_known_by_their_scheduler(environ, job):
    assert job_id(environ) == job
