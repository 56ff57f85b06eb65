"""Stopping jobs of this user, and no others."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress

from nemotron.errors import SubmitError
from nemotron.slurm.answers import ask, on_cluster
from nemotron.slurm.folder import CANCELLED
from nemotron.slurm.job_ref import JobRef
from nemotron.slurm.queue import rows_of
from nemotron.slurm.rows import Queued
from nemotron.transport.base import Session

GONE = ("Invalid job id", "already completing or completed")


def cancel(session: Session, refs: Sequence[JobRef]) -> None:
    """Waiting, running or put back in the queue: none of them starts again. Slurm lets a running job's step know with
    SIGTERM, and waits some seconds (its KillWait) for the summary that the runner writes then.

    What has ended is left alone, and so is a job that has one of these numbers by now.
    """
    groups: dict[tuple[str, str], list[JobRef]] = defaultdict(list)
    for ref in dict.fromkeys(refs):
        groups[ref.cluster, ref.user].append(ref)
    for (cluster, user), group in groups.items():
        rows, silent = rows_of(session, cluster, group)
        if silent:
            raise SubmitError(f"Slurm does not say whether the job is still there ({silent}): try again in a minute.")
        _cancel(session, cluster, user, rows)


def _cancel(session: Session, cluster: str, user: str, rows: dict[JobRef, Queued]) -> None:
    there = [ref for ref, row in rows.items() if row.is_at_work or row.is_completing]
    if not there:
        return
    for ref in there:  # before the signal: a step that is about to go on by itself looks for it
        with suppress(OSError):  # on a full disk a job can be cancelled all the same
            session.write(f"{ref.folder}/{CANCELLED}", b"")
    done = ask(session, ["scancel", *on_cluster(cluster), f"--user={user}", *(ref.job_id for ref in there)])
    if done.code and not any(word in done.said for word in GONE):
        raise SubmitError(f"scancel refuses: {done.said}")
