import json
import os
import subprocess
import sys
import threading
import time

import pytest

from nemo_evaluator.engine.claim import Claim
from nemo_evaluator.errors import UsageError


def put_claim(folder, age=0.0, **owner):
    path = folder / ".nel-claim"
    path.write_text(json.dumps(owner))
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_a_claim_is_exclusive_while_it_is_held(tmp_path):
    claim = Claim(tmp_path)
    with pytest.raises(UsageError, match=f"process {os.getpid()}"):
        Claim(tmp_path)
    claim.release()
    Claim(tmp_path).release()


def test_a_claim_left_by_a_killed_process_is_taken_over(tmp_path):
    """RM-07."""
    script = (
        "import sys, os, pathlib\nfrom nemo_evaluator.engine.claim import Claim\n"
        "Claim(pathlib.Path(sys.argv[1]))\nos._exit(9)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert (tmp_path / ".nel-claim").exists()
    Claim(tmp_path).release()


def test_a_claim_of_another_host_that_is_touched_is_alive(tmp_path):
    path = put_claim(tmp_path, pid=1, host="far-away", machine="far-away", job=None)
    done = threading.Event()

    def beat():
        while not done.wait(0.02):
            os.utime(path)

    beating = threading.Thread(target=beat)
    beating.start()
    with pytest.raises(UsageError, match="process 1 on far-away"):
        Claim(tmp_path, heartbeat_seconds=0.1)
    done.set()
    beating.join()


def test_a_claim_of_another_host_that_is_silent_is_taken_over(tmp_path):
    put_claim(tmp_path, pid=1, host="far-away", machine="far-away", job=None)
    Claim(tmp_path, heartbeat_seconds=0.05).release()


def test_a_restarted_scheduler_job_takes_its_own_claim_back(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    put_claim(tmp_path, pid=1, host="first-node", machine="first-node", job="4711")
    Claim(tmp_path).release()


@pytest.mark.parametrize("content", ["", "{", "[]"])
def test_a_claim_that_cannot_be_read_is_judged_by_its_age(tmp_path, content):
    path = tmp_path / ".nel-claim"
    path.write_text(content)
    os.utime(path, (1, 1))
    Claim(tmp_path).release()


def test_a_held_claim_is_touched(tmp_path):
    claim = Claim(tmp_path, heartbeat_seconds=0.02)
    os.utime(claim.path, (1, 1))
    deadline = time.monotonic() + 10
    while claim.path.stat().st_mtime < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert claim.path.stat().st_mtime > 2
    claim.release()
