"""`nemotron jobs status --sweep` on a terminal: a table that goes on until every job has ended."""

import os
import pty
import re
import subprocess
import time

import pytest

from nemotron.sweep.record import Place, Sweep, remember_sweep
from tests.launcher.cli.test_jobs_of_clusters import job, slurm

__all__ = ["job", "slurm"]


def plain(shown: bytes) -> str:
    """Without colours and movements of the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode("utf-8", "replace"))


@pytest.fixture
def terminal(user):
    """Runs a command on one, and gives all that it showed once it has ended."""
    master, slave = pty.openpty()

    def run(*words, until=lambda text: None):
        environ = user.environ | {"TERM": "xterm", "COLUMNS": "200", "NO_COLOR": "1"}
        process = subprocess.Popen(
            user.command(*words), cwd=user.folder, env=environ, stdin=slave, stdout=slave, stderr=slave
        )
        shown = b""
        os.set_blocking(master, False)
        try:
            while process.poll() is None:
                try:
                    shown += os.read(master, 1 << 16)
                except BlockingIOError:
                    time.sleep(0.02)
                until(plain(shown))
            while True:
                shown += os.read(master, 1 << 16)
        except BlockingIOError:
            return process.returncode, plain(shown)
        finally:
            process.kill()
            process.wait()

    yield run
    os.close(master)
    os.close(slave)


@pytest.mark.timeout(300)
def test_it_is_live_until_every_job_has_ended(user, slurm, job, terminal):
    job("RUNNING")
    remember_sweep(Sweep.of("slurm", [Place("m1", str(user.results))], "2026"), user.environ)

    def finish(text):
        if "1 running" in text:
            slurm.become(1, "COMPLETED")

    code, shown = terminal("jobs", "status", "--sweep", until=finish)
    assert code == 0
    assert shown.index("1 running") < shown.index("1 completed")
