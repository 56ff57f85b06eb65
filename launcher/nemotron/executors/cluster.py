"""What all ways to a Slurm cluster have in common: look, write the job's folder, submit, and look after the job."""

import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from nemotron.errors import JobLimitReached, SubmitError
from nemotron.executors.base import Pace
from nemotron.executors.cluster_survey import check, survey
from nemotron.executors.job_folder import JobFolder, contained, job_folder, unique_name
from nemotron.executors.refusals import explained
from nemotron.executors.sbatch import directives, script
from nemotron.executors.slurm_step import KEY
from nemotron.job import Job, JobState, Phase, Submission
from nemotron.profiles import SlurmProfile
from nemotron.secrets import values_of
from nemotron.slurm import cancel, log, queue
from nemotron.slurm.folder import BATCH, LOG, SECRETS
from nemotron.slurm.job_ref import JobRef
from nemotron.supervise import STOPPING
from nemotron.transport.base import Session
from nemotron.transport.reach import session_for

BACKEND = "slurm"
DEFAULT_JOB_DIR = "~/.nemotron/jobs"
STOPPED = 75
SAID_BY_THE_RUNNER = (0, 1, 2, STOPPED)


class _Interrupted(BaseException):
    """By a signal, while an attached job is waited for."""


@dataclass(frozen=True, slots=True)
class Accepted:
    job_id: str
    cluster: str = ""


class ClusterExecutor(ABC):
    """A subclass says how a written folder becomes a job."""

    pace = Pace(first=5.0, longest=30.0)
    tunnel: str

    def __init__(self, profile: SlurmProfile, environ: Mapping[str, str]) -> None:
        self.profile, self.environ = profile, environ

    @abstractmethod
    def command(self, folder: str) -> list[str]:
        """What the batch script becomes."""

    @abstractmethod
    def enqueue(self, session: Session, folder: JobFolder, export: str) -> Accepted: ...

    def run(self, job: Job) -> int:
        submission = self.submit(job)
        ref = JobRef.of(submission)
        print(f"Submitted job {ref.job_id} as {ref.name}; its folder is {ref.folder}", file=sys.stderr, flush=True)
        try:
            with _raising():
                return self._followed(submission)
        except _Interrupted:
            print(f"Cancelling job {ref.job_id}", file=sys.stderr, flush=True)
            with _raising():
                self.cancel([submission])
                return self._followed(submission, shows=False)

    def submit(self, job: Job) -> Submission:
        session = self.session()
        name = unique_name(job)
        self._text(job, name, f"/{name}", ())  # what the profile alone makes impossible is refused first
        contained(job, self.profile, name, f"/{name}", (0, 0))
        found = survey(session, self.profile, job)
        check(found, job, session)
        values = values_of(job.secrets, self.environ)
        exported = (KEY,) if values else ()
        path = f"{found.job_dir}/{name}"
        folder = job_folder(job, self.profile, name, values, found, self._text(job, name, path, exported))
        try:
            folder.write(session)
            accepted = self.enqueue(session, folder, ",".join(exported) or "NONE")
        except JobLimitReached:
            session.remove(path)
            raise
        except SubmitError as error:
            session.remove(path)
            raise SubmitError(explained(str(error), self.profile)) from None
        ref = JobRef(accepted.job_id, found.user, name, found.now, path, accepted.cluster)
        return Submission(BACKEND, ref.job_id, ref.details | {"tunnel": self.tunnel})

    def states(self, submissions: Sequence[Submission]) -> list[JobState]:
        refs = [JobRef.of(submission) for submission in submissions]
        states = queue.states_of(self.session(), refs)
        return [states[ref] for ref in refs]

    def state(self, submission: Submission) -> JobState:
        return self.states([submission])[0]

    def read(self, path: str) -> bytes:
        return self.session().read(path)

    def logs(self, submission: Submission, follow: bool) -> Iterator[str]:
        ref = JobRef.of(submission)
        yield from log.lines(
            self.session(), f"{ref.folder}/{LOG}", follow, lambda: self.state(submission).phase.is_final
        )

    def cancel(self, submissions: Sequence[Submission]) -> None:
        session, refs = self.session(), [JobRef.of(submission) for submission in submissions]
        cancel.cancel(session, refs)
        for ref in refs:
            session.remove(f"{ref.folder}/{SECRETS}")

    def session(self) -> Session:
        return session_for(self.profile, self.environ)

    def shown(self, job: Job) -> dict[str, list[str]]:
        """The script as `-d` shows it, and what its step starts; the job's own name ends in a number not yet drawn."""
        folder = f"{self.profile.remote_job_dir or DEFAULT_JOB_DIR}/{job.name}-NUMBER"
        exported = (KEY,) if values_of(job.secrets, self.environ) else ()
        started = contained(job, self.profile, f"{job.name}-NUMBER", folder.replace("~", "/HOME", 1), (1, 1))
        text = self._text(job, f"{job.name}-NUMBER", folder, exported)
        return {"script": text.splitlines(), "starts": list(started.run)}

    def _text(self, job: Job, name: str, folder: str, exported: tuple[str, ...]) -> str:
        comment = f"nemotron: {job.plan['model']['id']} to {job.output_dir}"
        return script(directives(self.profile, name, folder, comment, exported), self.command(folder))

    def _followed(self, submission: Submission, shows: bool = True) -> int:
        """The runner's exit code, once the job is over."""
        for line in self.logs(submission, follow=True):
            if shows:
                print(line, flush=True)
        state = self.state(submission)
        if state.exit_code not in SAID_BY_THE_RUNNER:
            print(f"The job has {state.phase}: {state.reason}", file=sys.stderr, flush=True)
        return exit_code_of(state)


def exit_code_of(state: JobState) -> int:
    if state.exit_code is not None:
        return state.exit_code
    return {Phase.COMPLETED: 0, Phase.STOPPED: STOPPED}.get(state.phase, 1)


def batch_command(python: str, folder: str) -> list[str]:
    return [python, "-I", f"{folder}/{BATCH}", folder]


@contextmanager
def _raising() -> Iterator[None]:
    def stop(number: int, _: object) -> None:
        raise _Interrupted

    earlier = {number: signal.signal(number, stop) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
