"""What all ways to a Slurm cluster have in common: look, write the job's folder, submit, and look after the job."""

import importlib
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nemotron.errors import JobLimitReached, LauncherError, SubmitError, UsageError
from nemotron.executors.base import Pace
from nemotron.executors.cluster_survey import Survey, check, survey
from nemotron.executors.job_folder import JobFolder, contained, image_of, job_folder, unique_name
from nemotron.executors.refusals import explained
from nemotron.executors.sbatch import directives, script
from nemotron.executors.slurm_step import KEY
from nemotron.images.reference import Reference
from nemotron.job import Job, JobState, Phase, Submission
from nemotron.profiles import SlurmProfile
from nemotron.secrets import values_of
from nemotron.slurm import cancel, log, queue
from nemotron.slurm.folder import BATCH, DEFAULT_JOB_DIR, LOG, SECRETS
from nemotron.slurm.job_ref import JobRef
from nemotron.supervise import STOPPING
from nemotron.transport.base import Session, TransportError
from nemotron.transport.reach import session_for
from nemotron.transport.several import read_several

BACKEND = "slurm"
SOME_HOME = "/HOME"
"""In what `-d` shows, which asks nobody where the home folder is."""
STOPPED, INTERRUPTED = 75, 130
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
    def check_place(self, job_dir: str) -> None:
        """Raises UsageError where this way leads to no job."""

    @abstractmethod
    def enqueue(self, session: Session, folder: JobFolder, export: str) -> Accepted: ...

    def run(self, job: Job) -> int:
        submission = self.submit(job)
        ref = JobRef.of(submission)
        _say(f"Submitted job {ref.job_id} as {ref.name}; its folder is {ref.folder}")
        try:
            with _raising():
                return self._followed(submission)
        except _Interrupted:
            _say(f"Cancelling job {ref.job_id}")
            return self._cancelled(submission)

    def _cancelled(self, submission: Submission) -> int:
        """Waits for the summary that the runner writes; told again, not any more."""
        try:
            with _raising():
                self.cancel([submission])
                return self._followed(submission, shows=False)
        except _Interrupted:
            return INTERRUPTED

    def submit(self, job: Job) -> Submission:
        """What the profile alone makes impossible is refused first, then what the cluster lacks; nothing is made until
        both are fine."""
        name, image = unique_name(job), image_of(job, self.profile)
        self._text(job, f"/{name}")
        contained(job, self.profile, name, f"/{name}", image=image)
        session = self.session()
        found = survey(session, self.profile, job)
        self.check_place(found.job_dir)
        check(found, job, session)
        folder = self._folder(job, f"{found.job_dir}/{name}", self._squashed(session, job, image), found)
        accepted = self._accepted(session, folder)
        ref = JobRef(accepted.job_id, found.user, name, found.now, folder.path, accepted.cluster)
        return Submission(BACKEND, ref.job_id, ref.details | {"tunnel": self.tunnel})

    def _folder(self, job: Job, path: str, image: Reference | Path | None, found: Survey) -> JobFolder:
        name = path.rpartition("/")[2]
        started = contained(job, self.profile, name, path, image=image, owner=(found.uid, found.gid))
        values = values_of(job.secrets, self.environ)
        return job_folder(job, self.profile, path, self._text(job, path), started, values, found)

    def _squashed(self, session: Session, job: Job, image: Reference | Path | None) -> Reference | Path | None:
        """The file of an image, where the profile has a folder for them."""
        if not self.profile.uses_squash or not isinstance(image, Reference):
            return image
        cache = importlib.import_module("nemotron.images.cache")  # httpx: too slow for commands that start nothing
        folder, force = str(self.profile.image_cache_dir), job.rebuilds_squash
        return Path(cache.ensure(session, image, folder, self.environ, force=force, say=_say))

    def _accepted(self, session: Session, folder: JobFolder) -> Accepted:
        """Of a job that was refused, nothing is left; where nobody knows, its folder stays."""
        try:
            _written(session, folder)
            return self.enqueue(session, folder, KEY if folder.key else "NONE")
        except TransportError:
            raise
        except LauncherError as error:
            session.remove(folder.path)
            if isinstance(error, JobLimitReached | UsageError):
                raise
            raise SubmitError(explained(str(error), self.profile)) from None

    def states(self, submissions: Sequence[Submission]) -> list[JobState]:
        refs = [JobRef.of(submission) for submission in submissions]
        states = queue.states_of(self.session(), refs)
        return [states[ref] for ref in refs]

    def state(self, submission: Submission) -> JobState:
        return self.states([submission])[0]

    def read(self, paths: Sequence[str]) -> dict[str, str]:
        return read_several(self.session(), paths)

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
        name = f"{job.name}-NUMBER"
        folder = f"{self.profile.remote_job_dir or DEFAULT_JOB_DIR.replace('~', SOME_HOME)}/{name}"
        started = contained(job, self.profile, name, folder, image=image_of(job, self.profile))
        return {"script": self._text(job, folder).splitlines(), "starts": list(started.run)}

    def _text(self, job: Job, folder: str) -> str:
        comment = f"nemotron: {job.plan['model']['id']} to {job.output_dir}"
        exported = (KEY,) if values_of(job.secrets, self.environ) else ()
        name = folder.rpartition("/")[2]
        return script(directives(self.profile, name, folder, comment, exported), self.command(folder))

    def _followed(self, submission: Submission, shows: bool = True) -> int:
        """The runner's exit code, once the job is over."""
        for line in self.logs(submission, follow=True):
            if shows:
                print(line, flush=True)
        state = self.state(submission)
        if state.exit_code not in SAID_BY_THE_RUNNER:
            _say(f"The job has {state.phase}: {state.reason}")
        return exit_code_of(state)


def exit_code_of(state: JobState) -> int:
    if state.exit_code is not None:
        return state.exit_code
    return {Phase.COMPLETED: 0, Phase.STOPPED: STOPPED}.get(state.phase, 1)


def _written(session: Session, folder: JobFolder) -> None:
    """Over a second connection if the first breaks: Slurm knows nothing of the job yet."""
    try:
        folder.write(session)
    except TransportError:
        try:
            folder.write(session)
        except TransportError as error:
            raise TransportError(f"{error} Nothing was submitted: try again.") from None


def batch_command(python: str, folder: str) -> list[str]:
    return [python, "-I", f"{folder}/{BATCH}", folder]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


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
