"""Two Slurm clusters that are asked the same: one of the fake's programs, one of real daemons."""

import getpass
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from nemotron.job import JobState
from nemotron.slurm.answers import submitted
from nemotron.slurm.job_ref import JobRef
from nemotron.slurm.queue import states_of
from nemotron.transport.here import Here
from tests.fakes.slurm import FakeSlurm

PATIENCE = 240.0


def refer(number: int | str, name: str, folder: Path, cluster: str = "") -> JobRef:
    folder.mkdir(exist_ok=True)
    return JobRef(str(number), getpass.getuser(), name, time.time(), str(folder), cluster)


class Cluster:
    """Jobs are submitted with their script alone; the session is what the launcher has of it."""

    session: Here
    folder: Path

    def submit(self, body: str, *options: str, name: str = "mine") -> JobRef:
        folder = self.folder / name
        folder.mkdir()
        own = [f"--job-name={name}", f"--output={folder}/job.log", "--open-mode=append", "--mem=50", *options]
        script = f"#!/bin/sh\n{body}\n".encode()
        answer = self.session.run(["sbatch", "--parsable", f"--chdir={folder}", *own], stdin=script)
        return refer(*submitted(answer)[:1], name, folder, submitted(answer)[1])

    def state(self, ref: JobRef) -> JobState:
        return states_of(self.session, [ref])[ref]

    def until(self, ref: JobRef, accepts: Callable[[JobState], bool]) -> JobState:
        deadline = time.monotonic() + PATIENCE
        while not accepts(state := self.state(ref)):
            assert time.monotonic() < deadline, state
            time.sleep(0.2)
        return state

    def ended(self, ref: JobRef) -> JobState:
        return self.until(ref, lambda state: state.phase.is_final)

    @staticmethod
    def log(ref: JobRef) -> str:
        path = Path(ref.folder) / "job.log"
        return path.read_text() if path.exists() else ""

    def logged(self, ref: JobRef, text: str) -> None:
        self.until(ref, lambda _: text in self.log(ref))

    def preempt(self, ref: JobRef, pause: float = 0.2) -> None:
        """The real one takes some seconds to start the job again, the fake one `pause`."""
        raise NotImplementedError

    def find_memory_exhausted(self, ref: JobRef) -> None:
        """Which the real one does by itself."""


class FakeCluster(Cluster):
    def __init__(self, fake: FakeSlurm, folder: Path) -> None:
        self.fake, self.folder = fake, folder
        self.session = Here(fake.environ(os.environ))

    def preempt(self, ref: JobRef, pause: float = 0.2) -> None:
        self.fake.turn(requeue_seconds=pause)
        self.fake.preempt(int(ref.job_id))

    def find_memory_exhausted(self, ref: JobRef) -> None:
        self.fake.exhaust_memory(int(ref.job_id))


class RealCluster(Cluster):
    def __init__(self, environ: dict[str, str], folder: Path) -> None:
        self.folder, self._refs = folder, list[JobRef]()
        self.session = Here({**os.environ, **environ})

    def submit(self, body: str, *options: str, name: str = "mine") -> JobRef:
        """With a name that no other run of the tests has."""
        ref = super().submit(body, *options, name=f"{name}-{os.getpid()}-{time.monotonic_ns()}")
        self._refs.append(ref)
        return ref

    def preempt(self, ref: JobRef, pause: float = 0.2) -> None:
        """By a job of the partition that may, which wants the cores of the same node."""
        node = self.session.run(["squeue", "--noheader", "--format=%N", f"--jobs={ref.job_id}"]).stdout.strip()
        script = b"#!/bin/sh\nsleep 1\n"
        options = ["--partition=urgent", f"--nodelist={node}", "--exclusive", "--output=/dev/null", "--mem=50"]
        assert self.session.run(["sbatch", *options], stdin=script).code == 0

    def close(self) -> None:
        numbers = [ref.job_id for ref in self._refs]
        if numbers:
            subprocess.run(["scancel", "--quiet", *numbers], env=self.session._environ, check=False, timeout=60)
