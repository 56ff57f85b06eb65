"""Waiting for jobs to end, and what exit code that is."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from nemotron.job import JobState, Phase
from nemotron.jobs import Record
from nemotron.states import Answers

SEVERITY = (0, 75, 1, 2)
"""Exit codes of the runner from good to bad: of several jobs the worst one counts."""
GRACE_SECONDS = 60.0
"""Accounting is late and engines restart: only after so long is an unknown state taken for the last word."""
OUTAGE_SECONDS = 3600.0
"""So long a backend may give no answer: the jobs go on behind a connection that is down."""


def wait_for(
    records: Sequence[Record],
    ask: Callable[[Sequence[Record]], Answers],
    warn: Callable[[str], None],
    *,
    timeout: float | None = None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, JobState]:
    """The state of every job by id: final, or unknown for so long that nobody will ever know, unless `timeout` seconds
    passed before."""
    deadline = math.inf if timeout is None else clock() + timeout
    patience = _Patience(warn)
    states: dict[str, JobState] = {}
    waiting, pause = list(records), 0.0
    while True:
        answers = ask(waiting)
        is_news = any(states.get(name) != state for name, state in answers.states.items())
        states |= answers.states
        now = clock()
        waiting = patience.left(waiting, answers, now)
        if not waiting or now >= deadline:
            return {record.id: states[record.id] for record in records}
        pause = answers.pace.first if is_news else answers.pace.slower(pause)
        sleep(min(pause, deadline - now))


@dataclass
class _Patience:
    """With jobs that nobody knows, and with backends that give no answer."""

    warn: Callable[[str], None]
    unknown_since: dict[str, float] = field(default_factory=dict)
    silent_since: dict[str, float] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)

    def left(self, waiting: Sequence[Record], answers: Answers, now: float) -> list[Record]:
        for line in answers.warnings():
            if line not in self.told:
                self.told.add(line)
                self.warn(line)
        return [record for record in waiting if self._is_worth_waiting(record.id, answers, now)]

    def _is_worth_waiting(self, name: str, answers: Answers, now: float) -> bool:
        if name in answers.silent:
            self.unknown_since.pop(name, None)
            return now - self.silent_since.setdefault(name, now) < OUTAGE_SECONDS
        self.silent_since.pop(name, None)
        state = answers.states[name]
        if state.phase is Phase.UNKNOWN:
            return name not in answers.unreadable and now - self.unknown_since.setdefault(name, now) < GRACE_SECONDS
        self.unknown_since.pop(name, None)
        return not state.phase.is_final


def exit_code_of(state: JobState, summary: Mapping[str, str], tasks: Sequence[str]) -> int:
    """Of the worst task; a job that is said to be fine but whose summary knows a failed task is not."""
    if state.phase is Phase.STOPPED:
        return 75
    if state.phase is not Phase.COMPLETED:
        return state.exit_code if state.exit_code in SEVERITY and state.exit_code else 1
    return int(any(summary.get(task, "ok") != "ok" for task in tasks))


def worst(codes: Sequence[int]) -> int:
    return max(codes, key=SEVERITY.index, default=0)
