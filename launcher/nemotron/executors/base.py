"""What every backend can do with a job."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from nemotron.files import write_bytes, write_json
from nemotron.job import Job, JobState, Submission

PLAN, RUNNER = "plan.json", "runner.pyz"


class Executor(Protocol):
    """Constructed as `SomeExecutor(profile, environ)`; `environ` has the values of the job's secrets.

    All methods raise SubmitError for what the backend refuses, in one line with the next step.
    """

    def run(self, job: Job) -> int:
        """Attached: output appears as it comes, signals reach the job; the runner's exit code."""

    def submit(self, job: Job) -> Submission:
        """Detached: returns when the backend has accepted the job."""

    def state(self, submission: Submission) -> JobState: ...

    def logs(self, submission: Submission, follow: bool) -> Iterator[str]:
        """Lines without their line ends; with `follow` until the job has ended."""

    def cancel(self, submission: Submission) -> None:
        """The runner gets its chance to write a summary; a job that has ended is left alone."""


@dataclass(frozen=True, slots=True)
class Staged:
    """The files a job needs, where it can read them."""

    plan: Path
    runner: Path


def stage(job: Job, folder: Path) -> Staged:
    folder.mkdir(parents=True, exist_ok=True)
    staged = Staged(folder / PLAN, folder / RUNNER)
    write_json(staged.plan, job.plan)
    write_bytes(staged.runner, job.runner)
    return staged
