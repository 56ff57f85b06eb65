"""One request ahead of the others, while it is unknown what the endpoint takes."""

import asyncio
from contextlib import suppress

SCOUT_SECONDS = 0.1
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
