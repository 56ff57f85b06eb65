"""A node that starts a job's batch step: a process with what Slurm gives, and a runner made of the code of a test."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nemotron.executors.sealed import new_key, seal
from nemotron.executors.shipped import START, batch_step, source
from nemotron.executors.slurm_step import KEY
from nemotron.slurm.folder import BATCH, LOG, MARKER, SECRETS, STEP
from nemotron.slurm.marker import Marker, parse_marker

PATIENCE = 180.0
ENDS_WHEN_TOLD = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
print("up", flush=True)
time.sleep(600)
"""


def wait_until(look: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@dataclass
class Node:
    folder: Path
    environ: dict[str, str] = field(default_factory=dict)
    alive: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def job(
        self,
        code: str,
        *,
        secrets: dict[str, str] | None = None,
        run: Sequence[str] | None = None,
        **spec: Any,
    ) -> None:
        """Writes the job's folder; `code` is the runner's."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / BATCH).write_bytes(batch_step())
        (self.folder / START).write_bytes(source(START))
        (self.folder / "runner.py").write_text(code)
        own = [sys.executable, "-I", str(self.folder / START), "0", str(self.folder / "runner.py")]
        step = {
            "prepare": [],
            "run": list(run or own),
            "clean_up": [],
            "environ": {},
            "first_in_path": "",
            "output_dir": str(self.folder / "results"),
            "has_secrets": bool(secrets),
            "max_requeues": 3,
            "time_limit": None,
            "warning": 60,
        }
        (self.folder / STEP).write_text(json.dumps(step | spec))
        if secrets:
            key = new_key()
            (self.folder / SECRETS).write_bytes(seal(secrets, key))
            self.environ[KEY] = key

    def start(self, restarts: int = 0) -> subprocess.Popen[bytes]:
        environ = {
            "PATH": os.environ["PATH"],
            "SLURM_JOB_ID": "7",
            **({"SLURM_RESTART_COUNT": str(restarts)} if restarts else {}),
            **self.environ,
        }
        command = [sys.executable, "-I", str(self.folder / BATCH), str(self.folder)]
        with (self.folder / LOG).open("ab") as log:
            child = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.alive.append(child)
        return child

    def run(self, restarts: int = 0) -> int:
        """To its end; the exit code."""
        return self.start(restarts).wait(PATIENCE)

    def log(self) -> str:
        return (self.folder / LOG).read_text()

    def marker(self) -> Marker:
        marker = parse_marker((self.folder / MARKER).read_bytes())
        assert marker is not None
        return marker

    def wait_for(self, words: str) -> None:
        wait_until(lambda: words in self.log())

    def close(self) -> None:
        for child in self.alive:
            if child.poll() is None:
                child.kill()
            child.wait()
