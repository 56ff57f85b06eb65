"""Slurm through `sbatch` on a login node: one connection, and a job is never submitted twice."""

import time
from collections.abc import Sequence

from nemotron.errors import LauncherError, SubmitError
from nemotron.executors.cluster import Accepted, ClusterExecutor, batch_command
from nemotron.executors.job_folder import JobFolder
from nemotron.executors.slurm_step import KEY
from nemotron.slurm.answers import SUBMIT_SECONDS, ask, submitted
from nemotron.slurm.rows import SQUEUE_FORMAT, queued
from nemotron.transport.base import Session, TransportError

WITH_KEY = f'read -r {KEY} && export {KEY} && exec "$@"'
"""The key comes through standard input: in arguments others could read it."""


class SshExecutor(ClusterExecutor):
    tunnel = "ssh"
    pauses: Sequence[float] = (0.0, 2.0, 5.0)
    """Seconds before each look for a job that may have been submitted."""

    def command(self, folder: str) -> list[str]:
        return batch_command(self.profile.python, folder)

    def check_place(self, job_dir: str) -> None:
        """What a login node must have, the survey has seen."""

    def enqueue(self, session: Session, folder: JobFolder, export: str) -> Accepted:
        sbatch = ["sbatch", "--parsable", f"--export={export}", folder.script]
        try:
            if not folder.key:
                return Accepted(*submitted(ask(session, sbatch, timeout=SUBMIT_SECONDS)))
            with_key = ["sh", "-c", WITH_KEY, "sh", *sbatch]
            key = folder.key.encode() + b"\n"
            return Accepted(*submitted(ask(session, with_key, stdin=key, timeout=SUBMIT_SECONDS)))
        except TransportError as error:
            return self._found_again(folder, error)

    def _found_again(self, folder: JobFolder, error: TransportError) -> Accepted:
        """The answer was lost: Slurm is asked for a job of that name, which no other has. sbatch may still be at it
        when the connection is back, so nothing is believed at the first look."""
        try:
            for pause in self.pauses:
                time.sleep(pause)
                if (accepted := _job_of(self.session(), folder)) is not None:
                    return accepted
        except LauncherError:
            raise TransportError(
                f"{error} Whether Slurm took the job is not known: `squeue --name={folder.name}` there tells."
            ) from None
        raise SubmitError(f"{error} Slurm did not get the job: submit it again.")


def _job_of(session: Session, folder: JobFolder) -> Accepted | None:
    options = ["--noheader", "--states=all", f"--user={folder.user}", f"--name={folder.name}"]
    answer = ask(session, ["squeue", *options, f"--Format={SQUEUE_FORMAT}"])
    if answer.code:
        raise SubmitError(answer.said)
    return next((Accepted(row.job_id) for row in queued(answer.stdout) if row.name == folder.name), None)
