"""The jobs of a sweep to their backend, each remembered before the next is submitted."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from nemotron.errors import JobLimitReached, LauncherError
from nemotron.job import JobState, Phase
from nemotron.jobs import Record
from nemotron.launch import all_ready, submit
from nemotron.request import CompiledJob
from nemotron.sweep.compiled import SweptJob

StatesOf = Callable[[Sequence[Record]], Mapping[str, JobState]]
"""By the id of the record."""


class Fate(StrEnum):
    SUBMITTED = "submitted"
    KEPT = "kept"
    """An earlier job of this point waits, runs or is complete."""
    FAILED = "failed"
    LEFT = "left"
    """The backend takes no more jobs of this user now."""


@dataclass(frozen=True, slots=True)
class Outcome:
    point: str
    output_dir: str
    fate: Fate
    record: Record | None
    detail: str = ""

    @property
    def exit_code(self) -> int:
        return int(self.fate in (Fate.FAILED, Fate.LEFT))


def submit_all(
    jobs: Sequence[SweptJob],
    earlier: Mapping[str, Record],
    states_of: StatesOf,
    profile_name: str,
    now: datetime,
    warn: Callable[[str], None],
) -> Iterator[Outcome]:
    """`earlier` has the latest job of points that have one. One point's failure does not stop the others."""
    states = states_of(list(earlier.values())) if earlier else {}
    kept = {
        job.point: _kept(job, earlier[job.point], states[earlier[job.point].id])
        for job in jobs
        if job.point in earlier and not _is_submitted_again(job, states[earlier[job.point].id])
    }
    yield from kept.values()
    due = [job for job in jobs if job.point not in kept]
    is_full = ""
    for job, ready in zip(due, all_ready([job.compiled for job in due], warn), strict=True):
        outcome = _submitted(job, ready, profile_name, now) if not is_full else _outcome(job, Fate.LEFT, is_full)
        is_full = outcome.detail if outcome.fate is Fate.LEFT else ""
        yield outcome


def _is_submitted_again(job: SweptJob, state: JobState) -> bool:
    """What failed or was stopped is; what is complete, or nobody knows of, when the user says what shall become of the
    results that are there."""
    plan = job.compiled.job.plan
    match state.phase:
        case Phase.FAILED | Phase.STOPPED:
            return True
        case Phase.COMPLETED:
            return bool(plan["overwrite"])
        case Phase.UNKNOWN:
            return bool(plan["overwrite"] or plan["resume"])
        case _:
            return False


def _kept(job: SweptJob, record: Record, state: JobState) -> Outcome:
    words = f"job {record.id} is {state.phase}"
    return Outcome(job.point, job.output_dir, Fate.KEPT, record, f"{words}: {state.reason}" if state.reason else words)


def _submitted(job: SweptJob, ready: CompiledJob | LauncherError, profile_name: str, now: datetime) -> Outcome:
    if isinstance(ready, LauncherError):
        return _outcome(job, Fate.FAILED, str(ready))
    try:
        record = submit(ready, profile_name, now)
    except JobLimitReached as error:
        return _outcome(job, Fate.LEFT, str(error))
    except (LauncherError, OSError) as error:
        return _outcome(job, Fate.FAILED, str(error))
    return Outcome(job.point, job.output_dir, Fate.SUBMITTED, record)


def _outcome(job: SweptJob, fate: Fate, detail: str) -> Outcome:
    return Outcome(job.point, job.output_dir, fate, None, " ".join(detail.split()))
