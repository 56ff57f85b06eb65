"""One time limit for many tasks at once, for less than a timer each.

All get the same seconds, so they run out in the order in which they began: one timer, set for the oldest, serves all.
"""

import asyncio
from types import TracebackType


class Deadlines:
    """`with deadlines.begin():` raises TimeoutError in a task that takes longer than `seconds`. For one event loop."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._open: dict[Deadline, None] = {}
        """In the order of their ends."""
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> "Deadline":
        """For the current task, from now on."""
        deadline = Deadline(self, asyncio.current_task(self._loop), self._loop.time() + self.seconds)
        self._open[deadline] = None
        if self._timer is None:
            self._timer = self._loop.call_at(deadline.at, self._expire)
        return deadline

    def end(self, deadline: "Deadline") -> None:
        self._open.pop(deadline, None)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        """Ends those whose time is over, and waits for the next; none left, the next to begin sets the timer."""
        self._timer = None
        now = self._loop.time()
        while self._open and (oldest := next(iter(self._open))).at <= now:
            self.end(oldest)
            oldest.expire()
        if self._open:
            self._timer = self._loop.call_at(oldest.at, self._expire)


class Deadline:
    """Of one task; a cancellation that came from elsewhere stays one."""

    __slots__ = ("_cancelling", "_deadlines", "_has_expired", "_task", "at")

    def __init__(self, deadlines: Deadlines, task: "asyncio.Task[object] | None", at: float) -> None:
        if task is None:
            raise RuntimeError("a deadline needs a task that it can end")
        self._deadlines, self._task, self.at = deadlines, task, at
        self._cancelling = task.cancelling()
        self._has_expired = False

    def expire(self) -> None:
        self._has_expired = True
        self._task.cancel()

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.end(self)
        if not self._has_expired:
            return
        is_ours = self._task.uncancel() <= self._cancelling
        if is_ours and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise TimeoutError from error
