"""A child process of this machine's environment."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from nemotron.errors import UsageError
from nemotron.executors.base import Pace, Staged, read_here, stage
from nemotron.home import home
from nemotron.job import Job, JobState, Phase, Submission
from nemotron.processes import signal_process, started
from nemotron.profiles import LocalProfile
from nemotron.secrets import values_of, without_secrets
from nemotron.supervise import EXIT_CODE, run_to_end

LOG = "job.log"
CLAIM = ".nemotron-eval.lock"
MARK = "Error: "
"""Begins what the runner says of a refusal."""
REFUSED = 2
STARTING_SECONDS = 10.0
"""A job that has neither begun nor refused after so long is left to itself."""


class LocalExecutor:
    pace = Pace(first=1.0, longest=1.0)

    def __init__(self, profile: LocalProfile, environ: Mapping[str, str]) -> None:
        self._profile, self._environ = profile, environ

    def run(self, job: Job) -> int:
        with tempfile.TemporaryDirectory(prefix="nemotron-") as folder:
            command = self._command(stage(job, Path(folder)))
            return run_to_end(command, self._job_environ(job))

    def submit(self, job: Job) -> Submission:
        folder = home(self._environ) / "local" / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        command = self._command(stage(job, folder))
        with (folder / LOG).open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "nemotron.supervise", str(folder), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._job_environ(job),
                start_new_session=True,
            )
        details = {"folder": str(folder), "started": started(child.pid) or ""}
        if _refuses(child, Path(job.output_dir)):
            refusal = _refusal(folder / LOG)
            shutil.rmtree(folder)
            raise UsageError(refusal)
        return Submission("local", str(child.pid), details)

    def states(self, submissions: Sequence[Submission]) -> list[JobState]:
        return [self.state(submission) for submission in submissions]

    def state(self, submission: Submission) -> JobState:
        record = Path(submission.details["folder"]) / EXIT_CODE
        if record.exists():
            return JobState.of_exit(int(record.read_text(encoding="utf-8")))
        if started(int(submission.job_id)) == submission.details["started"]:
            return JobState(Phase.RUNNING)
        if record.exists():  # it ended between the two looks
            return JobState.of_exit(int(record.read_text(encoding="utf-8")))
        return JobState(Phase.FAILED, reason="killed without a word; resume=true goes on from what it finished")

    def logs(self, submission: Submission, follow: bool) -> Iterator[str]:
        with (Path(submission.details["folder"]) / LOG).open(encoding="utf-8", errors="replace") as file:
            pending = ""
            while True:
                is_over = not follow or self.state(submission).phase.is_final
                pending += file.read()
                *lines, pending = pending.split("\n")
                yield from lines
                if is_over:
                    break
                time.sleep(0.2)
            if pending:
                yield pending

    def read(self, paths: Sequence[str]) -> dict[str, str]:
        return read_here(paths)

    def cancel(self, submissions: Sequence[Submission]) -> None:
        for submission in submissions:
            signal_process(int(submission.job_id), submission.details["started"], signal.SIGTERM)

    def _command(self, staged: Staged) -> list[str]:
        return [self._python(), str(staged.runner), str(staged.plan)]

    def _python(self) -> str:
        given = self._profile.python
        if given is None:
            return sys.executable
        found = shutil.which(Path(given).expanduser())
        if found is None:
            raise UsageError(
                f"python = {given!r} of the profile is no interpreter: give the path of one that has the harness."
            )
        return str(Path(found).absolute())

    def _job_environ(self, job: Job) -> dict[str, str]:
        """What this user has, less the secrets that the job did not ask for."""
        environ = without_secrets(self._environ) | dict(job.env) | values_of(job.secrets, self._environ)
        commands = str(Path(self._python()).parent)
        return environ | {"PATH": os.pathsep.join(filter(None, [commands, environ.get("PATH")]))}


def _refuses(child: subprocess.Popen[bytes], output_dir: Path) -> bool:
    """Known when the runner has claimed its folder or has ended; a refusal belongs to whoever submits."""
    deadline = time.monotonic() + STARTING_SECONDS
    while time.monotonic() < deadline and not (output_dir / CLAIM).exists():
        if (code := child.poll()) is not None:
            return code == REFUSED
        time.sleep(0.02)
    return False


def _refusal(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    said = [line.removeprefix(MARK) for line in lines if line.startswith(MARK)]
    return "\n".join(said) or f"The runner refused without a word: see {log}."
