"""When a failed request is asked again: tenacity's stop, wait and retry objects, combined into one value.

tenacity's own loop is not used: AsyncRetrying costs tens of microseconds on every success, and a request that succeeds
at once should not pay for those that fail. The objects see a real RetryCallState, so any of tenacity's will do.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from tenacity import AsyncRetrying, RetryCallState
from tenacity.retry import retry_base, retry_if_exception
from tenacity.stop import stop_after_attempt, stop_base, stop_before_delay
from tenacity.wait import wait_base, wait_exponential_jitter

from nemo_evaluator.errors import ErrorKind, RequestError

ATTEMPTS = 5
TIMEOUTS = 2
PATIENCE_SECONDS = 900.0


class AttemptFailed(RequestError):
    """One attempt failed; the policy decides whether there is another."""

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        status: int | None = None,
        is_transient: bool = False,
        retry_after: float | None = None,
        is_unreachable: bool = False,
    ) -> None:
        super().__init__(kind, message, status=status, is_unreachable=is_unreachable)
        self.is_transient = is_transient
        self.retry_after = retry_after
        """Seconds that the server asked to wait."""


class stop_after_timeouts(stop_base):
    """A request that ran into its time limit will most likely do so again, and every try costs the whole limit."""

    def __init__(self, max_timeouts: int) -> None:
        self.max_timeouts = max_timeouts

    def __call__(self, retry_state: RetryCallState) -> bool:
        error = failure_of(retry_state)
        is_timeout = isinstance(error, RequestError) and error.kind == "timeout"
        return is_timeout and retry_state.attempt_number >= self.max_timeouts


class stop_after_waiting(stop_base):
    """Bounds the seconds spent between attempts. How long the attempts themselves take is for the timeouts to say."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, retry_state: RetryCallState) -> bool:
        return retry_state.idle_for + retry_state.upcoming_sleep > self.seconds


def default_stop() -> stop_base:
    return stop_after_attempt(ATTEMPTS) | stop_after_timeouts(TIMEOUTS) | stop_after_waiting(PATIENCE_SECONDS)


def is_transient(error: BaseException) -> bool:
    return isinstance(error, AttemptFailed) and error.is_transient


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`RetryPolicy(stop=stop_after_attempt(3) | stop_before_delay(60))`. A server's Retry-After is the least wait."""

    stop: stop_base = field(default_factory=default_stop)
    wait: wait_base = field(default_factory=lambda: wait_exponential_jitter(initial=1, max=60, jitter=1))
    retry: retry_base = field(default_factory=lambda: retry_if_exception(is_transient))
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def bounded(cls, max_retries: int | None = None, deadline: float | None = None) -> "RetryPolicy":
        """For settings that are numbers; None keeps the default. No attempt begins later than `deadline` seconds."""
        stop = default_stop()
        if max_retries is not None:
            stop = stop_after_attempt(max_retries + 1) | stop_after_waiting(PATIENCE_SECONDS)
        return cls(stop=stop if deadline is None else stop | stop_before_delay(deadline))

    def begin(self, started: float) -> RetryCallState:
        """The memory of one request, made when its first attempt has failed; `started` is when that one was sent."""
        state = RetryCallState(AsyncRetrying(), fn=None, args=(), kwargs={})
        state.start_time = started
        state.attempt_number = 0
        return state

    def next_wait(self, state: RetryCallState, error: AttemptFailed) -> float | None:
        """Seconds until the next attempt, or None when this failure is final."""
        state.attempt_number += 1
        state.set_exception((type(error), error, error.__traceback__))
        state.outcome_timestamp = self.clock()
        if not self.retry(state):
            return None
        state.upcoming_sleep = max(self.wait(state), error.retry_after or 0.0)
        if self.stop(state):
            return None
        state.idle_for += state.upcoming_sleep
        return state.upcoming_sleep


def failure_of(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None


def read_retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds to wait, from Retry-After as a number or as an HTTP date; None when absent or not understood.
    A date is one of the server's clock, so it is compared with the server's own Date."""
    if (text := headers.get("Retry-After")) is None:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        moment = read_http_date(text)
    if moment is None:
        return None
    server_now = read_http_date(headers.get("Date", ""))
    return max(0.0, (moment - (server_now or now or datetime.now(UTC))).total_seconds())


def read_http_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
