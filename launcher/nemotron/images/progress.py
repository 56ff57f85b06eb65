"""How far something is, said at every tenth: often enough to see it live, seldom enough for a log."""

import threading
from collections.abc import Callable

STEPS = 10
QUICK_BYTES = 1_000_000_000
"""Less than this is done before anybody wonders."""


class Progress:
    """Of several threads together."""

    def __init__(self, doing: str, size: int, say: Callable[[str], None]) -> None:
        self._doing, self._size, self._say = doing, size, say
        self._done, self._lock = 0, threading.Lock()

    def add(self, size: int) -> None:
        with self._lock:
            before, self._done = self._done, self._done + size
            step = self._done * STEPS // self._size
            if self._size >= QUICK_BYTES and before * STEPS // self._size < step:
                self._say(f"{self._doing} {self._done / 1e9:.1f} of {self._size / 1e9:.1f} GB")
