"""What a run tells whoever watches it."""

import logging
from typing import Any, NamedTuple

from nemo_evaluator.engine.contract import FAULTS, fault
from nemo_evaluator.engine.ledger import Ledger

log = logging.getLogger(__name__)


class Settled(NamedTuple):
    """A sample that has reached its final state."""

    problem_idx: int
    repeat: int
    state: str
    """scored, truncated, empty or error:<kind>."""
    reward: float | None


class ProgressTracker:
    """Told of every settled sample. This one keeps silent; subclasses show. Called on the event loop: be quick."""

    def start(self, benchmark: str, ledger: Ledger) -> None:
        """Before the first request; `ledger` holds what earlier sessions settled."""

    def settled(self, sample: Settled) -> None:
        """Once for each sample of this session."""

    def finish(self) -> None:
        """After the last sample, also when the run was stopped."""


class Guarded(ProgressTracker):
    """Passes everything on to a tracker of the user's until that fails: a run does not end for want of a show."""

    def __init__(self, shown: ProgressTracker) -> None:
        self._shown = shown

    def start(self, benchmark: str, ledger: Ledger) -> None:
        self._tell("start", benchmark, ledger)

    def settled(self, sample: Settled) -> None:
        self._tell("settled", sample)

    def finish(self) -> None:
        self._tell("finish")

    def _tell(self, method: str, *arguments: Any) -> None:
        try:
            getattr(self._shown, method)(*arguments)
        except FAULTS as error:
            log.warning("The progress tracker is told no more: its %s fails: %s", method, fault(error))
            self._shown = ProgressTracker()
