"""Slurm's commands asked through a session, and what can be read from any of their answers."""

import re
from collections.abc import Iterable, Sequence

from nemotron.errors import JobLimitReached, SubmitError
from nemotron.transport.base import Done, Session

PLAIN = ("env", "LC_ALL=C", "SLURM_TIME_FORMAT=%s")
"""Words in English and times as seconds since the epoch, whatever the user's settings are."""
SUBMIT_SECONDS = 240.0
"""While the cluster is full, sbatch itself tries for two minutes."""
_ACCEPTED = re.compile(r"(\d+)(?:;(\S+))?")
_FULL = re.compile(r"(Max|Grp)SubmitJob|temporarily unable to accept job|job queue full")
"""A limit on jobs in the queue, of association, QOS or cluster; as jobs end there is room again."""


def ask(session: Session, command: Sequence[str], *, stdin: bytes = b"", timeout: float = 60.0) -> Done:
    return session.run([*PLAIN, *command], stdin=stdin, timeout=timeout)


def submitted(answer: Done) -> tuple[str, str]:
    """Job id and cluster (or "") of `sbatch --parsable`, whose answer a site's greeting may surround."""
    found = [match for line in answer.stdout.splitlines() if (match := _ACCEPTED.fullmatch(line.strip()))]
    if answer.code and _FULL.search(answer.stderr):
        reason = re.sub(r"\s*sbatch: error: ", "; ", answer.said).removeprefix("; ")
        raise JobLimitReached(
            f"The cluster takes no more jobs of this user now ({reason}): submit again when some have ended."
        )
    if answer.code or not found:
        raise SubmitError(f"sbatch refuses: {answer.said or 'it gave no job id, and no reason'}")
    return found[-1][1], found[-1][2] or ""


def on_cluster(cluster: str) -> list[str]:
    """The argument that names one of several clusters."""
    return [f"--clusters={cluster}"] if cluster else []


def listed(words: Iterable[str]) -> str:
    return ",".join(dict.fromkeys(words))
