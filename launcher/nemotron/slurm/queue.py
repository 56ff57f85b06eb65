"""How jobs are: the controller is asked first, then accounting, then the marker that a job's own step leaves.

A number is used again by later jobs, so an answer counts only where user, name and time fit. That nobody knows a job is
not yet that it failed: accounting is late, and forgets, and some clusters have none.
"""

import time
from collections import defaultdict
from collections.abc import Sequence

from nemotron.job import JobState
from nemotron.slurm.accounting import History, history_of
from nemotron.slurm.answers import ask, listed, on_cluster
from nemotron.slurm.evidence import Evidence, judged
from nemotron.slurm.job_ref import JobRef
from nemotron.slurm.rows import SQUEUE_FORMAT, Queued, is_job, queued
from nemotron.slurm.traces import Traces
from nemotron.transport.base import Session

UNKNOWN_NUMBER = "Invalid job id"
"""squeue's word when it is asked for one job only and has none with that number."""


def states_of(session: Session, refs: Sequence[JobRef]) -> dict[JobRef, JobState]:
    """One squeue for all jobs of a cluster, and one sacct for those that it does not show waiting or at work."""
    clusters: dict[str, list[JobRef]] = defaultdict(list)
    for ref in dict.fromkeys(refs):
        clusters[ref.cluster].append(ref)
    found = [_evidence(session, cluster, group) for cluster, group in clusters.items()]
    known = {ref: evidence for group in found for ref, evidence in group.items()}
    return {ref: judged(ref, known[ref], Traces(session, ref.folder), time.time()) for ref in refs}


def rows_of(session: Session, cluster: str, refs: Sequence[JobRef]) -> tuple[dict[JobRef, Queued], str]:
    """What the controller knows of each, and why it gave no answer, if it did not."""
    done = ask(
        session,
        [
            "squeue",
            *on_cluster(cluster),
            "--noheader",
            "--states=all",
            f"--user={listed(ref.user for ref in refs)}",
            f"--jobs={listed(ref.job_id for ref in refs)}",
            f"--Format={SQUEUE_FORMAT}",
        ],
    )
    if done.code and UNKNOWN_NUMBER not in done.said:
        return {}, done.said or f"squeue ended with {done.code}"
    rows = list(queued(done.stdout))
    return {ref: row for ref in refs for row in rows if is_job(row, ref)}, ""


def _evidence(session: Session, cluster: str, refs: Sequence[JobRef]) -> dict[JobRef, Evidence]:
    rows, silent = rows_of(session, cluster, refs)
    ended = [ref for ref in refs if ref not in rows or not rows[ref].is_at_work]
    history = history_of(session, cluster, ended) if ended else History({})
    return {ref: Evidence(rows.get(ref), history.lives.get(ref, ()), silent, history.silent) for ref in refs}
