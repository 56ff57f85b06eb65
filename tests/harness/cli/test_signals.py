"""Ctrl-C and SIGTERM, on a real process."""

import signal
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


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
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
