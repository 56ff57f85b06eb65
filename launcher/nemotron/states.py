"""Jobs of many backends: each is asked once for all of its own, and never again for what has ended."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nemotron.errors import LauncherError, SubmitError
from nemotron.executors.base import Pace
from nemotron.job import JobState, Phase
from nemotron.jobs import Record, by_backend, settle

IDLE = Pace(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Answers:
    states: Mapping[str, JobState]
    """By the id of the record; unknown where nobody gave an answer."""
    silent: Mapping[str, str] = field(default_factory=dict)
    """Why a job's backend gave no answer, which says nothing about the job."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Why a backend cannot even be asked: the record is from another version."""
    pace: Pace = IDLE
    """Of the slowest backend that was asked."""

    def warnings(self) -> list[str]:
        """One line a cause, however many jobs it hides."""
        causes: dict[str, int] = defaultdict(int)
        for reason in (*self.silent.values(), *self.unreadable.values()):
            causes[reason] += 1
        return [f"{reason} {_jobs(number)} unknown for now." for reason, number in causes.items()]


def ask(records: Sequence[Record], environ: Mapping[str, str]) -> Answers:
    states = {record.id: record.final for record in records if record.final is not None}
    backends, strange = by_backend([record for record in records if record.final is None])
    silent: dict[str, str] = {}
    unreadable = {job_id: str(error) for job_id, error in strange.items()}
    paces = [IDLE]
    for group in backends:
        ids = [record.id for record in group]
        try:
            executor = group[0].executor(environ)
            paces.append(executor.pace)
            found = executor.states([record.submission for record in group])
        except SubmitError as error:
            silent |= dict.fromkeys(ids, str(error))
            continue
        except LauncherError as error:
            unreadable |= dict.fromkeys(ids, str(error))
            continue
        for record, state in zip(group, found, strict=True):
            states[record.id] = state
            if state.phase.is_final:
                settle(record, state, environ)
    states |= {job_id: JobState(Phase.UNKNOWN, reason=why) for job_id, why in (silent | unreadable).items()}
    slowest = Pace(max(pace.first for pace in paces), max(pace.longest for pace in paces))
    return Answers({record.id: states[record.id] for record in records}, silent, unreadable, slowest)


def cancel_all(
    records: Sequence[Record], environ: Mapping[str, str]
) -> tuple[list[Record], list[tuple[Record, LauncherError]]]:
    """Those that were asked to stop, and those that could not be; one backend's refusal is not another's."""
    backends, unreadable = by_backend(records)
    asked: list[Record] = []
    refused = [(record, unreadable[record.id]) for record in records if record.id in unreadable]
    for group in backends:
        try:
            group[0].executor(environ).cancel([record.submission for record in group])
            asked += group
        except LauncherError as error:
            refused += [(record, error) for record in group]
    return asked, refused


def _jobs(number: int) -> str:
    return "Its job is" if number == 1 else f"Its {number} jobs are"
