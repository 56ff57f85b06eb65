"""What a run tells whoever watches it."""

from typing import NamedTuple

from nemo_evaluator.engine.ledger import Ledger


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
