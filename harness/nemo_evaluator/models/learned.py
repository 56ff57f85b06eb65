"""What requests have taught about an endpoint, shared by every client of it: nobody has to be refused twice."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from nemo_evaluator.models.payload import Dialect

SCOUT_SECONDS = 1.0
"""How long the others wait: a refusal is quick, an answer may be slow."""


class Scout:
    """Lets a refusal of a parameter be met once, and not by every task that started at the same moment."""

    def __init__(self) -> None:
        self._is_over = False
        self._answered: asyncio.Event | None = None

    async def follow(self) -> None:
        if self._is_over:
            return
        if self._answered is None:
            self._answered = asyncio.Event()
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._answered.wait(), SCOUT_SECONDS)
        self.end()

    def end(self) -> None:
        self._is_over = True
        if self._answered is not None:
            self._answered.set()


@dataclass(slots=True)
class Learned:
    """About one URL and one model."""

    dialect: Dialect = field(default_factory=Dialect)
    scout: Scout = field(default_factory=Scout)


class Dialects:
    """One for all clients of a run, so that each lesson is learned once an endpoint and model."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Learned] = {}

    def of(self, url: str, model: str) -> Learned:
        return self._known.setdefault((url, model), Learned())
