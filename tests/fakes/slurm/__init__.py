"""A Slurm of one machine: sbatch, squeue, sacct, scancel, scontrol, srun, sinfo and sacctmgr as programs on a PATH.

They have the answers, exit codes and messages of the real ones (22.05), and a test has its hand on what happens:

    with FakeSlurm.at(tmp_path / "slurm") as slurm:
        environ = slurm.environ(os.environ)     # PATH begins with the programs
        job = slurm.add("my-job", state="RUNNING", start=…)   # or submit one with sbatch
        slurm.become(job, "PREEMPTED")

What a test can turn, `slurm.turn(knob=value)`:

    banner              line(s) that every command prints first, as a site's profile does
    cluster             sbatch --parsable prints `ID;CLUSTER`
    next_id             the number of the next job: set it back and numbers are used again
    controller          "up" or "down" (squeue, sbatch, scancel, scontrol fail), after `controller_seconds` of silence
    accounting          "on"; "late": no rows yet; "nameless": as for the first seconds, when every job is called
                        allocation; "stale": rows that still say RUNNING; "off": no accounting; "down": slurmdbd does
                        not answer
    max_submit          so many jobs of a user may wait or run; sbatch refuses further ones
    runs                True: sbatch starts the script as a process of this machine, as a node would, with what
                        --export and --export-file let through, SLURM_* variables, --output, --open-mode, --time,
                        --signal; scancel, preempt, fail_node and the time limit send what Slurm sends, SIGKILL comes
                        `kill_wait` seconds after SIGTERM; requeued jobs start again after `requeue_seconds`
    minute              seconds that a minute of --time lasts
    image_env           variables of every image: srun lets them win, but for those named by --container-env

`says(command, stdout, …, when="words")` answers a command line that holds `when` with exactly that; sinfo and sacctmgr
know nothing else. `calls("squeue")` are the command lines and environments there were.
"""

import getpass
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes.slurm import state as world
from tests.fakes.slurm.commands import PROGRAMS

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Call:
    argv: list[str]
    environ: dict[str, str]
    stdin: str


class FakeSlurm:
    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"

    @classmethod
    @contextmanager
    def at(cls, folder: Path) -> Iterator["FakeSlurm"]:
        slurm = cls(folder)
        slurm.bin.mkdir(parents=True)
        for name in PROGRAMS:
            slurm._install(name)
        try:
            yield slurm
        finally:
            slurm._end()

    def environ(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        return {**environ, "PATH": os.pathsep.join([str(self.bin), environ.get("PATH", os.defpath)])}

    def turn(self, **knobs: Any) -> None:
        with world.opened(self.folder) as state:
            assert knobs.keys() <= world.EMPTY.keys(), f"there is no knob {knobs.keys() - world.EMPTY.keys()}"
            state |= knobs

    def says(self, command: str, stdout: str = "", *, stderr: str = "", code: int = 0, when: str = "") -> None:
        """The latest such answer that fits counts."""
        answer = {"command": command, "stdout": stdout, "stderr": stderr, "code": code, "when": when}
        with world.opened(self.folder) as state:
            state["says"].insert(0, answer)

    def lacks(self, command: str) -> None:
        """It is not installed."""
        (self.bin / command).unlink()

    def add(self, name: str, state: str = "PENDING", *, user: str | None = None, **known: Any) -> int:
        """A job that nobody submitted; `known` may give id and submit, and what `become` takes."""
        facts = {key: known.pop(key) for key in ("id", "submit", "options") if key in known}
        with world.opened(self.folder) as cluster:
            job = world.new_job(cluster, name=name, user=user or getpass.getuser(), **facts)
            if state not in ("PENDING", "REQUEUE_HOLD"):
                world.become(job, "RUNNING")
            world.become(job, state, **known)
            number: int = job["id"]
        return number

    def become(self, number: int, state: str, **facts: Any) -> None:
        """facts: reason (of waiting), exit ("1:0"), by (user id), steps ({"batch": "OUT_OF_MEMORY"})."""
        with world.opened(self.folder) as cluster:
            world.become(self._job(cluster, number), state, **facts)

    def plays(self, number: int, *states: str | tuple[str, dict[str, Any]]) -> None:
        """One after the other, each when squeue is asked again."""
        with world.opened(self.folder) as cluster:
            played = [(word, {}) if isinstance(word, str) else word for word in states]
            self._job(cluster, number)["script_states"] = played

    def forget(self, number: int, *, queue: bool = True, accounting: bool = False) -> None:
        """As the controller does some minutes after a job's end, and accounting after months."""
        with world.opened(self.folder) as cluster:
            job = self._job(cluster, number)
            job["is_queued"] = job["is_queued"] and not queue
            job["is_accounted"] = job["is_accounted"] and not accounting

    def preempt(self, number: int) -> None:
        self._ask(number, "preempt")

    def fail_node(self, number: int) -> None:
        self._ask(number, "fail_node")

    def exhaust_memory(self, number: int) -> None:
        self._ask(number, "oom")

    def job(self, number: int) -> dict[str, Any]:
        """Everything that is known of the latest job with that number: options, environ, script, state, lives."""
        with world.opened(self.folder) as cluster:
            return self._job(cluster, number)

    def jobs(self) -> list[dict[str, Any]]:
        with world.opened(self.folder) as cluster:
            jobs: list[dict[str, Any]] = cluster["jobs"]
        return jobs

    def calls(self, command: str) -> list[Call]:
        path = self.folder / "calls.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [Call(line["argv"], line["environ"], line["stdin"]) for line in lines if line["command"] == command]

    def wait(self, number: int, *states: str, seconds: float = 180.0) -> dict[str, Any]:
        """For a job that runs, until it is in one of these states."""
        deadline = time.monotonic() + seconds
        while (job := self.job(number))["state"] not in states:
            assert time.monotonic() < deadline, f"job {number} is {job['state']} after {seconds:.0f} s"
            time.sleep(0.02)
        return job

    def _ask(self, number: int, request: str) -> None:
        with world.opened(self.folder) as cluster:
            job = self._job(cluster, number)
            assert job["pid"] is not None, f"job {number} does not run: {job['state']}"
            job["asked"] = request

    def _install(self, name: str) -> None:
        code = (
            f"import sys; from pathlib import Path; sys.path.insert(0, {str(ROOT)!r}); "
            f"from tests.fakes.slurm.commands import main; main({name!r}, Path({str(self.folder)!r}), sys.argv[1:])"
        )
        program = self.bin / name
        program.write_text(f"#!{sys.executable} -S\n{code}\n")
        program.chmod(0o755)

    def _end(self) -> None:
        """Jobs that still run are cancelled, and seen to end; those that wait never start."""
        with world.opened(self.folder) as cluster:
            for job in cluster["jobs"]:
                if job["pid"] is None and job["state"] not in world.FINAL:
                    world.become(job, "CANCELLED")
        for job in self.jobs():
            if job["pid"] is not None:
                with suppress(ProcessLookupError):
                    os.killpg(job["pid"], signal.SIGKILL)
                with world.opened(self.folder) as cluster:
                    self._job(cluster, job["id"])["asked"] = "cancel"
        for job in self.jobs():
            if job["pid"] is not None:
                self.wait(job["id"], *world.FINAL)

    @staticmethod
    def _job(cluster: dict[str, Any], number: int) -> dict[str, Any]:
        job: dict[str, Any] = [job for job in cluster["jobs"] if job["id"] == number][-1]
        return job
