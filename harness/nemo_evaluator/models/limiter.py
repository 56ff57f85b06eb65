"""How many requests one endpoint gets at a time, and how fast they may start.

Concurrency follows TCP's congestion control (Chiu and Jain, 1989): one more per round of successes, half on a refusal.
A quota (429) is a rate and not a width, so after a refusal starts are also spaced by the rate that was seen to succeed,
which then grows with every success until it is refused again or no longer felt.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

QUICK_GROWTH, CAREFUL_GROWTH = 1.05, 1.01
"""Of the rate, with every success."""
STARTS_PER_TURN = 64
"""Of the event loop: replies are read in between. Fewer would leave places empty on a busy machine, whose turns are
long."""
NARROWEST_GAP = 0.0005
"""Seconds between starts under which pacing is dropped: a loop cannot feel it."""
WIDEST_GAP = 10.0


class AdaptiveLimiter:
    """One per endpoint, shared by every client of it. First come, first served."""

    def __init__(self, max_limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        if max_limit < 1:
            raise ValueError(f"a limiter needs room for at least one request, not {max_limit}")
        self.max_limit = max_limit
        self._limit = float(max_limit)
        self._clock = clock
        self._waiters: deque[asyncio.Future[int]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._in_flight = 0
        self._peak_in_flight = 0
        self._started = 0
        self._successes = 0
        self._gap = 0.0
        self._gap_refused = 0.0
        self._next_start = 0.0
        self._paused_until = 0.0
        self._round_ends_with = 0
        self._round_began = clock()
        self._round_successes = 0
        self._decreases = 0
        self._throttled_seconds = 0.0
        self._request_seconds = self._busy_seconds = 0.0
        self._accounted_until = clock()
        self._started_in_turn = 0
        self._slot = Slot(self)

    @property
    def limit(self) -> int:
        return int(self._limit)

    @property
    def in_flight(self) -> int:
        return self._in_flight

    def slot(self) -> "Slot":
        """`async with limiter.slot() as ticket:` holds one place; the ticket says when the request started."""
        return self._slot

    async def acquire(self) -> int:
        if not self._waiters and self._may_start():
            return self._start()
        return await self._wait_for_turn()

    def release(self) -> None:
        self._account()
        self._in_flight -= 1
        if self._waiters:
            self._admit()

    def succeeded(self) -> None:
        self._successes += 1
        if self._limit < self.max_limit:
            self._limit = min(self.max_limit, self._limit + 1 / self._limit)
        if self._gap:
            self._speed_up()

    def throttled(self, ticket: int, *, retry_after: float | None = None, is_quota: bool = True) -> None:
        """The endpoint refused a request for being one too many (429: a quota; 503: it is overloaded).

        Requests that were in flight together are refused together: they count as one refusal.
        """
        if retry_after is not None:
            self.pause_until(self._clock() + retry_after)
        if ticket <= self._round_ends_with:
            return
        self._decreases += 1
        self._limit = max(1.0, min(self._limit, self._in_flight) / 2)
        if is_quota:
            self._pace()
        self._round_ends_with = self._started
        self._round_began = max(self._clock(), self._paused_until)
        self._round_successes = self._successes

    def pause_until(self, moment: float) -> None:
        """Nothing starts before `moment` (of the limiter's clock). Never shortens a pause."""
        extra = moment - max(self._paused_until, self._clock())
        if extra > 0:
            self._throttled_seconds += extra
            self._paused_until = moment
            self._next_start = max(self._next_start, moment)

    def lower_to(self, max_limit: int) -> None:
        """For a limit found later than this limiter was made, such as the number of open files allowed."""
        self.max_limit = max(1, min(self.max_limit, max_limit))
        self._limit = min(self._limit, self.max_limit)

    def state(self) -> dict[str, Any]:
        return {
            "limit": self.limit,
            "max_limit": self.max_limit,
            "in_flight": self._in_flight,
            "peak_in_flight": self._peak_in_flight,
            "mean_in_flight": round(self._request_seconds / self._busy_seconds, 2) if self._busy_seconds else 0.0,
            "decreases": self._decreases,
            "throttled_seconds": round(self._throttled_seconds, 3),
            "paced_per_second": round(1 / self._gap, 3) if self._gap else None,
        }

    def _account(self) -> None:
        """Request-seconds so far: what was really in flight on average, which may be far less than the limit."""
        now = self._clock()
        self._request_seconds += self._in_flight * (now - self._accounted_until)
        if self._in_flight:
            self._busy_seconds += now - self._accounted_until
        self._accounted_until = now

    def _may_start(self) -> bool:
        if self._in_flight >= int(self._limit) or self._started_in_turn >= STARTS_PER_TURN:
            return False
        return not self._next_start or self._is_open()

    def _is_open(self) -> bool:
        if self._clock() < self._next_start:
            return False
        if not self._gap:
            self._next_start = 0.0
        return True

    def _start(self) -> int:
        self._account()
        if not self._started_in_turn:
            asyncio.get_running_loop().call_soon(self._next_turn)
        self._started_in_turn += 1
        self._started += 1
        self._in_flight += 1
        if self._in_flight > self._peak_in_flight:
            self._peak_in_flight = self._in_flight
        if self._gap:
            self._next_start = max(self._clock(), self._next_start) + self._gap
        return self._started

    def _next_turn(self) -> None:
        self._started_in_turn = 0
        if self._waiters:
            self._admit()

    async def _wait_for_turn(self) -> int:
        turn: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiters.append(turn)
        self._admit()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()
            self._forget_cancelled()
            raise

    def _forget_cancelled(self) -> None:
        """The last to give up also stops the timer: it belongs to an event loop that may end now."""
        while self._waiters and self._waiters[0].done():
            self._waiters.popleft()
        if not self._waiters and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _admit(self) -> None:
        while self._waiters and self._may_start():
            turn = self._waiters.popleft()
            if not turn.done():
                turn.set_result(self._start())
        if self._waiters and self._next_start and self._timer is None:
            delay = max(0.0, self._next_start - self._clock())
            self._timer = asyncio.get_running_loop().call_later(delay, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._admit()

    def _speed_up(self) -> None:
        """Quickly up to half the rate that was refused last, then with care: as CUBIC does with windows."""
        is_far_below = self._gap > 2 * self._gap_refused
        self._gap /= QUICK_GROWTH if is_far_below else CAREFUL_GROWTH
        if self._gap < NARROWEST_GAP:
            self._gap = 0.0

    def _pace(self) -> None:
        """Spaces starts by the rate of successes since the last refusal, the pause included. Without a success there
        is no rate to be seen: then the same few prompts are refused, and slowing down for them would never end."""
        seen = self._successes - self._round_successes
        if not seen:
            return
        now = max(self._clock(), self._paused_until)
        self._gap_refused = self._gap
        self._gap = min(max(now - self._round_began, 1e-6) / seen, WIDEST_GAP)
        self._next_start = max(self._next_start, now)


class Slot:
    """Holds no state of its own, so one serves all requests: the hot path allocates nothing."""

    __slots__ = ("_limiter",)

    def __init__(self, limiter: AdaptiveLimiter) -> None:
        self._limiter = limiter

    async def __aenter__(self) -> int:
        return await self._limiter.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._limiter.release()
