"""What a cluster's accounting has of jobs, where there is accounting: late at times, and not for ever."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nemotron.slurm.answers import ask, listed, on_cluster
from nemotron.slurm.job_ref import JobRef
from nemotron.slurm.rows import SACCT_FORMAT, Accounted, accounted, is_job
from nemotron.transport.base import Session


@dataclass(frozen=True, slots=True)
class History:
    lives: Mapping[JobRef, tuple[Accounted, ...]]
    """Oldest first; a job that was started again has several."""
    silent: str = ""
    """Why accounting gave no answer, in its own words."""


def history_of(session: Session, cluster: str, refs: Sequence[JobRef]) -> History:
    done = ask(
        session,
        [
            "sacct",
            *on_cluster(cluster),
            "--noheader",
            "--parsable2",
            "--duplicates",  # else only the latest job with a number, which may be another's
            f"--user={listed(ref.user for ref in refs)}",
            f"--jobs={listed(ref.job_id for ref in refs)}",
            f"--starttime={_since(refs)}",
            f"--format={SACCT_FORMAT}",
        ],
    )
    if done.code:
        return History({}, done.said or f"sacct ended with {done.code}")
    lives = _named(session, sorted(accounted(done.stdout), key=lambda life: life.submitted or math.inf))
    return History({ref: tuple(life for life in lives if is_job(life, ref)) for ref in refs})


def _named(session: Session, lives: Sequence[Accounted]) -> list[Accounted]:
    """With the names of those who cancelled jobs; accounting has their numbers."""
    numbers = {life.by for life in lives if life.by.isdigit()}
    names = {number: session.run(["id", "-un", number]) for number in sorted(numbers)}
    known = {number: done.stdout.strip() for number, done in names.items() if not done.code}
    return [replace(life, by=known.get(life.by, life.by)) for life in lives]


def _since(refs: Sequence[JobRef]) -> str:
    """Counted back from now by the cluster's clock, as its time zone is not known here; a day more than needed."""
    seconds = time.time() - min(ref.submitted for ref in refs)
    return f"now-{max(0, math.ceil(seconds / 3600)) + 24}hours"
