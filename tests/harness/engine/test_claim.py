import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from nemo_evaluator.engine.claim import Claim, create, refuse_claimed
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


def test_of_many_that_find_a_dead_claim_one_takes_it(tmp_path):
    """Each sees the same dead owner; a later one must not remove the claim that an earlier one has just made."""
    for _ in range(20):
        put_claim(tmp_path, 1000, pid=1, host="far-away", machine="far-away", job=None)
        barrier, taken = threading.Barrier(4), []

        def take(barrier=barrier, taken=taken):
            barrier.wait()
            with suppress(UsageError):
                taken.append(Claim(tmp_path))

        takers = [threading.Thread(target=take) for _ in range(4)]
        for taker in takers:
            taker.start()
        for taker in takers:
            taker.join()
        assert len(taken) == 1
        taken[0].release()
        assert list(tmp_path.iterdir()) == []


def test_who_was_taken_for_dead_leaves_its_successor_the_claim(tmp_path):
    claim = Claim(tmp_path)
    put_claim(tmp_path, pid=1, host="far-away", machine="far-away", job=None)
    claim.release()
    assert json.loads((tmp_path / ".nel-claim").read_text())["host"] == "far-away"


def test_without_hard_links_a_claim_is_exclusive_too(tmp_path):
    assert create(tmp_path / "claim", b"mine") and not create(tmp_path / "claim", b"yours")
    assert (tmp_path / "claim").read_bytes() == b"mine"


def test_a_takeover_that_was_killed_holds_nobody_up(tmp_path):
    put_claim(tmp_path, 1000, pid=1, host="far-away", machine="far-away", job=None)
    lock = tmp_path / ".nel-claim.takeover"
    lock.touch()
    os.utime(lock, (1, 1))
    Claim(tmp_path).release()
    assert list(tmp_path.iterdir()) == []


def test_a_second_step_of_a_scheduler_job_takes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    claim = Claim(tmp_path)
    with pytest.raises(UsageError, match="is being written by"):
        Claim(tmp_path)
    claim.release()


def test_a_folder_is_refused_before_anything_is_written_to_it(tmp_path):
    refuse_claimed(tmp_path)
    claim = Claim(tmp_path)
    with pytest.raises(UsageError, match="is being written by"):
        refuse_claimed(tmp_path)
    claim.release()
    refuse_claimed(tmp_path)


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
    deadline = time.monotonic() + 180
    while claim.path.stat().st_mtime < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert claim.path.stat().st_mtime > 2
    claim.release()
