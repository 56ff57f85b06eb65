"""How a job is, from what controller, accounting and its own folder say of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nemotron.job import JobState, Phase
from nemotron.slurm.job_ref import JobRef
from nemotron.slurm.marker import Marker
from nemotron.slurm.reasons import ENDED, MAY_COME_BACK, ended, exited, waiting
from nemotron.slurm.rows import ACTIVE, WAITING, Accounted, Queued
from nemotron.slurm.traces import Traces

ACCOUNTING_SECONDS = 60.0
"""So long accounting may take to say why a job ended; from then on what else is known is believed."""
FINISHING = JobState(Phase.RUNNING, reason="has ended, and Slurm is tidying up after it")
STOPPED = 75
"""The runner's exit code when it was told to stop, be it by a user or to start again later."""
KILLED = 128 + 9


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
    def is_completing(self) -> bool:
        return self.row is not None and self.row.is_completing

    @property
    def has_run(self) -> bool:
        return self.restarts > 0 or not self.lives or self.lives[-1].has_started

    @property
    def last(self) -> Accounted | None:
        """The end of its last life, where that is known to be the end of the job.

        Slurm may start some again, which only the controller knows; and who cancelled a job is said a moment later.
        """
        life = self.lives[-1] if self.lives else None
        if life is None or life.state in (WAITING | ACTIVE) - MAY_COME_BACK:
            return None
        if life.state in MAY_COME_BACK:
            has_come_back = self.row is not None and self.row.state != life.state
            return None if self.controller_silent or has_come_back else life
        is_nameless = life.state == "CANCELLED" and not life.by
        return None if is_nameless and self.is_completing else life


def judged(ref: JobRef, known: Evidence, traces: Traces, now: float) -> JobState:
    if known.row is not None and known.row.is_at_work:
        state = _at_work(known.row)
    elif known.last is not None:
        state = _explained(ended(known.last, known.has_run), traces)
    elif known.is_completing:
        state = _completing(traces.over, now)
    else:
        state = _without_accounting(ref, known, traces, now)
    return replace(state, restarts=max(state.restarts, known.restarts))


def _at_work(row: Queued) -> JobState:
    if row.state in WAITING:
        return JobState(Phase.QUEUED, reason=waiting(row.state, row.reason, row.job_id))
    return JobState(Phase.RUNNING, reason="" if row.state == "RUNNING" else row.state.lower())


def _completing(over: Marker | None, now: float) -> JobState:
    """A node may be stuck in this for hours, but a job that stopped may also be about to start again."""
    if over is None or now - over.updated < ACCOUNTING_SECONDS:
        return FINISHING
    return _by_marker(over)


def _without_accounting(ref: JobRef, known: Evidence, traces: Traces, now: float) -> JobState:
    """Accounting has nothing, or not yet, or not the last word."""
    over = traces.over
    if known.row is not None:
        state, ended_at = _explained(ended(known.row.as_life()), traces), known.row.ended
    elif over is not None and not (known.controller_silent and over.exit_code == STOPPED):
        state, ended_at = _by_marker(over), over.updated
    else:
        return _unseen(ref, known, traces, now)
    is_late = ended_at is not None and now - ended_at < ACCOUNTING_SECONDS and not known.accounting_silent
    return FINISHING if is_late and state.phase is not Phase.COMPLETED else state


def _by_marker(over: Marker) -> JobState:
    if over.exit_code is None:
        return JobState(Phase.FAILED, None, over.reason, over.restarts)
    state = exited(over.exit_code)
    return replace(state, reason=over.reason or state.reason, restarts=over.restarts)


def _explained(state: JobState, traces: Traces) -> JobState:
    """The job's own words say more than an exit code."""
    if state.exit_code is None or state.phase is Phase.COMPLETED:
        return state
    if state.exit_code == KILLED and traces.ran_out_of_memory:
        return replace(state, exit_code=None, reason=ENDED["OUT_OF_MEMORY"][1])
    over = traces.over
    return replace(state, reason=over.reason) if over is not None and over.reason else state


def _unseen(ref: JobRef, known: Evidence, traces: Traces, now: float) -> JobState:
    marker, life = traces.marker, known.lives[-1] if known.lives else None
    if known.controller_silent:
        why = f"as far as is known; the controller gives no answer: {known.controller_silent}"
        has_started = marker is not None if life is None else life.state not in WAITING | MAY_COME_BACK
        return JobState(Phase.RUNNING if has_started else Phase.QUEUED, reason=why)
    if now - ref.submitted < ACCOUNTING_SECONDS:
        return JobState(Phase.UNKNOWN, reason="Slurm does not show it yet")
    silent = f" ({known.accounting_silent})" if known.accounting_silent else ""
    left = "its step left no word of its end" if marker is not None else "it left no sign of a start"
    return JobState(Phase.UNKNOWN, reason=f"neither squeue nor accounting{silent} know job {ref.job_id}, and {left}")
