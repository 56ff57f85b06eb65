"""What every backend can do with a job."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from nemotron.files import write_bytes, write_json
from nemotron.job import Job, JobState, Submission

PLAN, RUNNER = "plan.json", "runner.pyz"


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a backend is asked while a job is waited for: less often the longer nothing happens."""

    first: float
    """Seconds between the first two questions."""
    longest: float

    def slower(self, seconds: float) -> float:
        return min(self.longest, seconds * 1.5)


class Executor(Protocol):
    """Constructed as `SomeExecutor(profile, environ)`; `environ` has the values of the job's secrets.

    All methods raise SubmitError for what the backend refuses, in one line with the next step.
    """

    pace: Pace

    def run(self, job: Job) -> int:
        """Attached: output appears as it comes, signals reach the job; the runner's exit code."""

    def submit(self, job: Job) -> Submission:
        """Detached: returns when the backend has accepted the job."""

    def states(self, submissions: Sequence[Submission]) -> list[JobState]:
        """One for each, in their order; the backend is asked once where it can be."""

    def logs(self, submission: Submission, follow: bool) -> Iterator[str]:
        """Lines without their line ends; with `follow` until the job has ended."""

    def read(self, paths: Sequence[str]) -> dict[str, str]:
        """Those text files of jobs that are there, by the names that they have where the jobs run."""

    def cancel(self, submissions: Sequence[Submission]) -> None:
        """The runners get their chance to write a summary; what has ended is left alone."""


@dataclass(frozen=True, slots=True)
class Staged:
    """The files a job needs, where it can read them."""

    plan: Path
    runner: Path


def read_here(paths: Sequence[str]) -> dict[str, str]:
    found = {}
    for path in paths:
        with suppress(OSError):
            found[path] = Path(path).read_text(encoding="utf-8", errors="replace")
    return found


def stage(job: Job, folder: Path) -> Staged:
    folder.mkdir(parents=True, exist_ok=True)
    staged = Staged(folder / PLAN, folder / RUNNER)
    write_json(staged.plan, job.plan)
    write_bytes(staged.runner, job.runner)
    return staged
