"""Ctrl-C, SIGTERM, a terminal or a reader that goes away: on a real process."""

import signal
import subprocess
import sys
import time

import pytest

SLOW_SCORER = """
import time
from nemo_evaluator.environments import *

@register("slow")
class Slow(EvalEnvironment):
    def __len__(self): return 50
    async def seed(self, idx): return SeedResult("q", "a")
    async def verify(self, response, expected, **metadata):
        open("scoring", "w").close()
        time.sleep(600)
"""


@pytest.fixture
def stuck(nel, server):
    """A run whose scorer holds the event loop: it cannot end in an orderly way."""
    (nel.folder / "slow.py").write_text(SLOW_SCORER)
    running = nel.start("eval", "run", "-b", "slow.py", "--model-url", server.url, "--model-id", "m")
    try:
        while not (nel.folder / "scoring").exists():
            time.sleep(0.05)
            assert running.poll() is None
        yield running
    finally:
        running.kill()
        running.communicate()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_leaves_a_partial_bundle_that_resumes(nel, quick, server, number, code):
    """7.4 item 58: Ctrl-C used to exit with 0 and no bundle."""
    server.control(behaviours=[{"delay": 0.3}])
    running = nel.start("eval", "run", *quick, "-O", "benchmarks[0].max_concurrent=4")
    while len(server.log()) < 8:
        time.sleep(0.02)
    running.send_signal(number)
    out, err = running.communicate(timeout=180)
    assert running.returncode == code, out + err
    assert nel.bundle()["status"] == "interrupted" and "interrupted" in err
    finished = nel.bundle()["n_results"]
    server.control(behaviours=[], reset_log=True)
    nel("eval", "run", *quick, "--resume")
    assert 0 < finished < 60 and len(server.log()) <= 60 - finished
    assert nel.bundle()["status"] == "completed"


def test_a_second_ctrl_c_stops_at_once(stuck):
    stuck.send_signal(signal.SIGINT)
    time.sleep(0.3)
    stuck.send_signal(signal.SIGINT)
    stuck.communicate(timeout=180)
    assert stuck.returncode == -signal.SIGINT


def test_a_second_sigterm_is_an_echo_and_a_later_one_stops_at_once(stuck):
    """Slurm sends it twice, to the step and to the job: the files must be finished nevertheless."""
    stuck.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    stuck.send_signal(signal.SIGTERM)
    time.sleep(1)
    assert stuck.poll() is None
    time.sleep(4.5)
    stuck.send_signal(signal.SIGTERM)
    _, err = stuck.communicate(timeout=180)
    assert stuck.returncode == -signal.SIGTERM and err.count("Stopping") == 1


def test_nohup_is_respected(nel, quick, server):
    server.control(behaviours=[{"delay": 0.2}])
    command = [sys.executable, "-m", "nemo_evaluator.cli.main", "eval", "run", *quick]
    running = subprocess.Popen(
        ["nohup", *command], cwd=nel.folder, env=nel.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not server.log():
        time.sleep(0.02)
    running.send_signal(signal.SIGHUP)
    running.communicate(timeout=180)
    assert running.returncode == 0 and nel.bundle()["status"] == "completed"


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_were_never_open_end_no_run(nel, quick, closed):
    """The first socket took the number of standard output, and the event loop aborted the process."""
    command = [sys.executable, "-m", "nemo_evaluator.cli.main", "eval", "run", *quick]
    done = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *command], cwd=nel.folder, env=nel.environ, timeout=180)
    assert done.returncode == 0 and nel.bundle()["status"] == "completed"


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_reader_that_goes_away_ends_no_run(nel, quick, server, as_json):
    """`nel eval run ... 2>&1 | head -1`: it used to die at its next progress line, without a bundle."""
    server.control(behaviours=[{"delay": 0.2}])
    flags = ["-O", "benchmarks[0].max_concurrent=8", "-O", "output.progress_interval=0.2", *as_json]
    command = [sys.executable, "-m", "nemo_evaluator.cli.main", "eval", "run", *quick, *flags]
    running = subprocess.Popen(
        command, cwd=nel.folder, env=nel.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert b"60 samples" in running.stdout.readline()
    running.stdout.close()
    assert running.wait(timeout=180) == 0
    assert nel.bundle()["status"] == "completed"
