"""How a job is, from what controller, accounting and its own folder say of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nemotron.job import JobState, Phase
from nemotron.slurm.job_ref import JobRef
from nemotron.slurm.marker import Marker
from nemotron.slurm.reasons import ENDED, MAY_COME_BACK, ended, exited, waiting
from nemotron.slurm.rows import ACTIVE, WAITING, Accounted, Queued

ACCOUNTING_SECONDS = 60.0
"""So long accounting may take to say why a job ended; from then on what else is known is believed."""
FINISHING = "has ended, and Slurm is tidying up after it"


@dataclass(frozen=True, slots=True)
class Evidence:
    row: Queued | None
    """The controller's; None also where it gave no answer."""
    lives: Sequence[Accounted]
    controller_silent: str = ""
    accounting_silent: str = ""

    @property
    def restarts(self) -> int:
        return max(self.row.restarts if self.row else 0, len(self.lives) - 1, 0)

    @property
    def last(self) -> Accounted | None:
        """Its last life, if that is known to have ended."""
        return self.lives[-1] if self.lives and self.lives[-1].state not in WAITING | ACTIVE else None


def judged(ref: JobRef, known: Evidence, now: float, marker_of: Callable[[JobRef], Marker | None]) -> JobState:
    """`marker_of` is asked only where it is needed: it costs a look at the job's folder."""
    if known.row is not None and known.row.is_at_work:
        state = _at_work(known.row)
    elif known.last is not None and _is_final(known.last, known):
        state = _explained(ended(known.last), marker_of(ref))
    else:
        state = _without_accounting(ref, known, now, marker_of(ref))
    return replace(state, restarts=max(state.restarts, known.restarts))


def _at_work(row: Queued) -> JobState:
    if row.state in WAITING:
        return JobState(Phase.QUEUED, reason=waiting(row.state, row.reason, row.job_id))
    return JobState(Phase.RUNNING, reason="" if row.state == "RUNNING" else row.state.lower())


def _is_final(life: Accounted, known: Evidence) -> bool:
    """Slurm may start some again, which only the controller knows; and who cancelled a job is said a moment later."""
    if life.state in MAY_COME_BACK:
        return not known.controller_silent and (known.row is None or not known.row.is_completing)
    is_nameless = life.state == "CANCELLED" and not life.by
    return not (is_nameless and known.row is not None and known.row.is_completing)


def _without_accounting(ref: JobRef, known: Evidence, now: float, marker: Marker | None) -> JobState:
    """Accounting has nothing, or not yet, or nothing that is the last word."""
    row, over = known.row, marker if marker is not None and marker.is_over else None
    if row is not None and row.is_completing:
        is_stuck = over is not None and now - over.updated > ACCOUNTING_SECONDS
        return _by_marker(over) if over is not None and is_stuck else JobState(Phase.RUNNING, reason=FINISHING)
    ended_at = row.ended if row is not None else over.updated if over is not None else None
    state = _by_row(row, over) if row is not None else _by_marker(over) if over is not None else None
    if state is not None:
        is_late = ended_at is not None and now - ended_at < ACCOUNTING_SECONDS and not known.accounting_silent
        return JobState(Phase.RUNNING, reason=FINISHING) if is_late and state.phase is not Phase.COMPLETED else state
    return _unseen(ref, known, now, marker)


def _by_row(row: Queued, over: Marker | None) -> JobState:
    if row.state == "CANCELLED" or row.state in ENDED or over is None:
        return ended(row.as_life())
    return _explained(ended(row.as_life()), over)


def _by_marker(over: Marker) -> JobState:
    if over.exit_code is None:
        return JobState(Phase.FAILED, None, over.reason, over.restarts)
    return _explained(replace(exited(over.exit_code), restarts=over.restarts), over)


def _explained(state: JobState, marker: Marker | None) -> JobState:
    """The step's own words say more than an exit code."""
    if marker is None or not marker.is_over or not marker.reason or state.exit_code is None:
        return state
    return replace(state, reason=marker.reason)


def _unseen(ref: JobRef, known: Evidence, now: float, marker: Marker | None) -> JobState:
    life = known.lives[-1] if known.lives else None
    if known.controller_silent:
        why = f"as far as is known; the controller gives no answer: {known.controller_silent}"
        if life is not None and life.state in WAITING | MAY_COME_BACK:
            return JobState(Phase.QUEUED, reason=why)
        return JobState(Phase.RUNNING if life is not None or marker is not None else Phase.QUEUED, reason=why)
    if now - ref.submitted < ACCOUNTING_SECONDS:
        return JobState(Phase.UNKNOWN, reason="Slurm does not show it yet")
    silent = f" ({known.accounting_silent})" if known.accounting_silent else ""
    left = "its step left no word of its end" if marker is not None else "it left no sign of a start"
    return JobState(Phase.UNKNOWN, reason=f"neither squeue nor accounting{silent} know job {ref.job_id}, and {left}")
