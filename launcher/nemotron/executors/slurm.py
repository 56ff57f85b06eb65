"""Slurm on its login node, through submitit: it puts the job back into the queue when its time is up.

What it pickles is one class of this module and the path of the job's folder. The job runs in the Python that submits,
which must therefore be on storage that the nodes see.
"""

import io
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING

from nemotron.errors import UsageError
from nemotron.executors import slurm_step
from nemotron.executors.cluster import Accepted, ClusterExecutor
from nemotron.executors.job_folder import JobFolder
from nemotron.executors.slurm_step import KEY
from nemotron.profiles import SlurmProfile
from nemotron.secrets import without_secrets
from nemotron.slurm.answers import submitted
from nemotron.slurm.folder import SCRIPT
from nemotron.transport.base import Done, Session

if TYPE_CHECKING:
    from submitit.core.utils import DelayedSubmission

OF_ONE_NODE = ("/tmp", "/var/tmp", "/dev/shm", "/run")
"""Folders that other nodes do not see."""
TIME_IS_UP = signal.SIGUSR2


class SlurmExecutor(ClusterExecutor):
    tunnel = "local"

    def command(self, folder: str) -> list[str]:
        return ["env", "SUBMITIT_EXECUTOR=slurm", sys.executable, "-u", "-m", "submitit.core._submit", folder]

    def check_place(self, job_dir: str) -> None:
        check_python(Path(sys.executable), job_dir)

    def enqueue(self, session: Session, folder: JobFolder, export: str) -> Accepted:
        with _environment(self.environ, folder.key):
            return _submitted(folder, export, self.profile)


class BatchStep:
    """What submitit runs in the job."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self) -> int:
        """Only code 0 is a return: submitit's own exit code is 0 for all of them."""
        requeue = signal.getsignal(TIME_IS_UP)
        assert callable(requeue)  # submitit's
        code = slurm_step.main(self.folder, lambda job_id: str(requeue(TIME_IS_UP, None) or ""))
        if code:
            sys.exit(code)
        return code

    def checkpoint(self) -> "DelayedSubmission":
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def check_python(python: Path, job_dir: str) -> None:
    """Where the jobs' folders lie in the same place, there is but one node."""
    for folder in OF_ONE_NODE:
        if python.is_relative_to(folder) and not Path(job_dir).is_relative_to(folder):
            raise UsageError(
                f"{python}, which runs this, would run the job, too, and nodes do not see {folder}: install nemotron "
                'on shared storage, or submit with tunnel = "ssh".'
            )


def _submitted(folder: JobFolder, export: str, profile: SlurmProfile) -> Accepted:
    from submitit import SlurmExecutor as Submitit
    from submitit.core.utils import FailedJobError

    answers: list[Accepted] = []

    class Sbatch(Submitit):
        """submitit's way of starting and restarting, with this project's script and command line."""

        def _make_submission_file_text(self, command: str, uid: str) -> str:
            return folder.files[SCRIPT].decode()

        def _make_submission_command(self, submission_file_path: Path) -> list[str]:
            return ["sbatch", "--parsable", f"--export={export}", str(submission_file_path)]

        @staticmethod
        def _get_job_id_from_submission_command(string: bytes | str) -> str:
            text = string if isinstance(string, str) else string.decode()
            answers.append(Accepted(*submitted(Done(0, text, ""))))
            return answers[-1].job_id

    executor = Sbatch(folder.path, max_num_timeout=profile.max_requeues if profile.requeue else 0)
    executor.update_parameters(time=max(1, (profile.time or 0) // 60))
    try:
        with redirect_stderr(io.StringIO()):  # it prints what sbatch says, and raises it
            executor.submit(BatchStep(folder.path))
    except FailedJobError as error:
        submitted(Done(1, "", str(error)))  # raises what it means
    return answers[-1]


@contextmanager
def _environment(environ: Mapping[str, str], key: str) -> Iterator[None]:
    """For submitit, which takes its own from this process: without secrets, but for the key."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(without_secrets(environ) | ({KEY: key} if key else {}))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
