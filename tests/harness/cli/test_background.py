"""A run that goes on without its shell, and the commands that look after it."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest


@pytest.fixture
def slow(nel, quick, server):
    """A background run that takes some seconds; its id."""
    server.control(behaviours=[{"delay": 0.2}])
    done = nel("eval", "run", *quick, "--background", "-O", "benchmarks[0].max_concurrent=2")
    return re.search(r"Run (\S+) goes on in the background", done.stdout)[1]


def wait_for(nel, run_id, state):
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        report = json.loads(nel("eval", "status", "-r", run_id, "--json").stdout)
        if report["state"] == state:
            return report
        time.sleep(0.1)
    raise AssertionError(f"{run_id} never was {state}: {report}")


def test_a_background_run_finishes_on_its_own(nel, quick):
    """7.7 item 89: its status is there for programs too."""
    done = nel("eval", "run", *quick, "--background")
    run_id = re.search(r"Run (\S+) goes", done.stdout)[1]
    report = wait_for(nel, run_id, "completed")
    assert report["benchmarks"][0]["done"] == report["benchmarks"][0]["total"] == 60
    assert nel.bundle()["status"] == "completed"
    assert "tiny_arithmetic: pass@1" in nel("eval", "logs", "-r", run_id).stdout
    assert not (nel.folder / "eval_results/nel.pid").exists()


def test_status_shows_a_running_run_and_stop_ends_it(nel, slow, server):
    shown = nel("eval", "status").stdout
    assert f"Run {slow}: running" in shown and "tiny_arithmetic" in shown
    while len(server.log()) < 8:
        time.sleep(0.05)
    assert "has stopped" in nel("eval", "stop").stdout
    assert nel.bundle()["status"] == "interrupted"
    assert wait_for(nel, slow, "interrupted")
    assert "is not running" in nel("eval", "stop", "-r", slow).stdout


def test_a_killed_run_is_seen_as_dead_and_resumes(nel, slow, quick, server):
    """RM-07."""
    while len(server.log()) < 8:
        time.sleep(0.05)
    os.kill(int((nel.folder / "eval_results/nel.pid").read_text()), signal.SIGKILL)
    wait_for(nel, slow, "died")
    server.control(behaviours=[])
    nel("eval", "run", *quick, "--resume")
    assert nel.bundle()["status"] == "completed"


def test_logs_follow_until_the_end(nel, slow):
    assert "tiny_arithmetic: pass@1" in nel("eval", "logs", "-f", "-r", slow).stdout


def test_a_background_run_that_is_refused_says_so_at_once(nel, quick):
    nel("eval", "run", *quick)
    refused = nel("eval", "run", *quick, "--background", code=2)
    assert "already contains results" in refused.stderr


def test_a_background_run_that_is_refused_leaves_no_folder(nel, quick):
    refused = nel("eval", "run", *quick, "-b", "tiny_aritmetic", "-o", "new", "--background", code=2)
    assert "tiny_arithmetic" in refused.stderr and not (nel.folder / "new").exists()


def test_no_secret_is_in_the_process_list(nel, quick, server):
    server.control(behaviours=[{"delay": 0.3}])
    canary = "sk-canary-0123456789"
    nel("eval", "run", *quick, "--background", "--api-key", canary)
    pid = (nel.folder / "eval_results/nel.pid").read_text().strip()
    assert canary not in Path(f"/proc/{pid}/cmdline").read_text()
    nel("eval", "stop")
    assert server.log()[0]["headers"]["authorization"] == f"Bearer {canary}"


@pytest.mark.parametrize("command", ["status", "logs", "stop"])
def test_an_unknown_run_is_one_line(nel, command):
    assert "holds no run" in nel("eval", command, code=2).stderr
    assert "No run 'nope'" in nel("eval", command, "-r", "nope", code=2).stderr


def test_a_foreground_run_has_no_log(nel, quick):
    nel("eval", "run", *quick)
    assert "--background" in nel("eval", "logs", code=2).stderr
    assert "completed" in nel("eval", "status").stdout


def test_timestamped_runs_have_folders_of_their_own(nel, quick, server):
    stamped = (*quick, "-O", "output.timestamped=true")
    nel("eval", "run", *stamped)
    nel("eval", "run", *stamped)
    assert len(list(nel.folder.glob("eval_results/*/tiny_arithmetic/eval-*.json"))) == 2
    server.control(reset_log=True)
    nel("eval", "run", *stamped, "--resume")
    assert server.log() == []


def test_a_run_needs_no_home(nel, quick):
    """As in many containers: then it is found by its folder."""
    nowhere = {"HOME": "/proc/nowhere"}
    done = nel("eval", "run", *quick, "--background", **nowhere)
    folder = nel.folder / "eval_results"
    assert f"  nel eval status -o {folder}" in done.stdout
    deadline = time.monotonic() + 180
    while "completed" not in nel("eval", "status", "-o", str(folder), **nowhere).stdout:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    log = nel("eval", "logs", "-o", str(folder), **nowhere).stdout
    assert f"look after this run by its folder, -o {folder}." in log
