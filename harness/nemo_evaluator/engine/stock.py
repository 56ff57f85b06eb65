"""Work laid in ahead of those who take it."""

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")

PLACES_A_WAKE = 16


class Stock(Generic[T]):
    """A bounded queue for producers that are quick: one that found it full is woken for several free places at once,
    and not for each, which would switch tasks twice an item."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._refill_at = max(size // 2, size - PLACES_A_WAKE)
        self._items: deque[T] = deque()
        self._givers: deque[asyncio.Future[None]] = deque()
        self._takers: deque[asyncio.Future[None]] = deque()

    async def put(self, item: T) -> None:
        while len(self._items) >= self._size:
            await _turn(self._givers)
        self._items.append(item)
        _wake_one(self._takers)

    async def take(self) -> T:
        while not self._items:
            await _turn(self._takers)
        item = self._items.popleft()
        if len(self._items) <= self._refill_at:
            _wake_one(self._givers)
        return item


async def _turn(waiting: deque[asyncio.Future[None]]) -> None:
    turn = asyncio.get_running_loop().create_future()
    waiting.append(turn)
    try:
        await turn
    except asyncio.CancelledError:
        if not turn.cancelled():
            _wake_one(waiting)  # the turn was this task's; it goes to the next
        raise


def _wake_one(waiting: deque[asyncio.Future[None]]) -> None:
    while waiting:
        turn = waiting.popleft()
        if not turn.cancelled():
            turn.set_result(None)
            return
