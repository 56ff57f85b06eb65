"""Slurm through `sbatch` on a login node: one connection, and a job is never submitted twice."""

from nemotron.errors import LauncherError, SubmitError
from nemotron.executors.cluster import Accepted, ClusterExecutor, batch_command
from nemotron.executors.job_folder import JobFolder
from nemotron.executors.slurm_step import KEY
from nemotron.slurm.answers import ask, submitted
from nemotron.transport.base import Session, TransportError

WITH_KEY = f'read -r {KEY} && export {KEY} && exec "$@"'
"""The key comes through standard input: in arguments others could read it."""


class SshExecutor(ClusterExecutor):
    tunnel = "ssh"

    def command(self, folder: str) -> list[str]:
        return batch_command(self.profile.python, folder)

    def check_place(self, job_dir: str) -> None:
        """What a login node must have, the survey has seen."""

    def enqueue(self, session: Session, folder: JobFolder, export: str) -> Accepted:
        sbatch = ["sbatch", "--parsable", f"--export={export}", folder.script]
        try:
            if not folder.key:
                return Accepted(*submitted(ask(session, sbatch)))
            with_key = ["sh", "-c", WITH_KEY, "sh", *sbatch]
            return Accepted(*submitted(ask(session, with_key, stdin=folder.key.encode() + b"\n")))
        except TransportError as error:
            return _found_again(self.session(), folder, error)


def _found_again(session: Session, folder: JobFolder, error: TransportError) -> Accepted:
    """The answer was lost: Slurm is asked whether it has a job of that name, which no other job has."""
    lost = f"{error} Whether Slurm took the job is not known"
    look = f"`squeue --me --name={folder.name}` on the login node tells"
    try:
        answer = ask(session, ["squeue", "--me", "--noheader", f"--name={folder.name}", "--format=%A"])
    except LauncherError:
        raise TransportError(f"{lost}: {look}.") from None
    found = answer.stdout.split()
    if answer.code or len(found) > 1:
        raise TransportError(f"{lost}: {look}.")
    if not found:
        raise SubmitError(f"{error} Slurm did not get the job: submit it again.")
    return Accepted(found[0])
