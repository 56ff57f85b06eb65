import asyncio
from datetime import UTC, datetime

import pytest
from tenacity.stop import stop_after_attempt, stop_before_delay
from tenacity.wait import wait_fixed, wait_none

from nemo_evaluator.models.retry import AttemptFailed, RetryPolicy, read_retry_after

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BUSY = AttemptFailed("server", "busy", status=503, is_transient=True)
LATE = AttemptFailed("timeout", "late", is_transient=True)


def waits(policy, *errors):
    state = policy.begin(started=policy.clock())
    return [policy.next_wait(state, error) for error in errors]


def test_a_transient_failure_is_asked_again_until_the_attempts_are_used_up():
    policy = RetryPolicy(stop=stop_after_attempt(3), wait=wait_fixed(2))
    assert waits(policy, BUSY, BUSY, BUSY) == [2, 2, None]


def test_a_permanent_failure_is_final_at_once():
    assert waits(RetryPolicy(), AttemptFailed("auth", "no", status=401)) == [None]


def test_waits_grow_with_jitter():
    first, second, third, *_ = waits(RetryPolicy(), BUSY, BUSY, BUSY)
    assert 1 <= first <= 2 <= second <= 3
    assert 4 <= third <= 5


def test_retry_after_is_the_least_wait():
    error = AttemptFailed("rate_limit", "slow", status=429, is_transient=True, retry_after=30)
    assert waits(RetryPolicy(wait=wait_fixed(1)), error) == [30]
    assert waits(RetryPolicy(wait=wait_fixed(60)), error) == [60]


def test_no_attempt_begins_after_the_deadline():
    now = 0.0
    policy = RetryPolicy(stop=stop_before_delay(10), wait=wait_fixed(4), clock=lambda: now)
    state = policy.begin(started=0.0)
    assert policy.next_wait(state, BUSY) == 4
    now = 7.0
    assert policy.next_wait(state, BUSY) is None


def test_a_timeout_is_tried_once_more_only():
    assert waits(RetryPolicy(wait=wait_none()), LATE, LATE) == [0, None]


def test_slow_attempts_do_not_use_up_the_patience_for_waiting():
    now = 0.0
    policy = RetryPolicy(wait=wait_fixed(400), clock=lambda: now)
    state = policy.begin(started=0.0)
    now = 9000.0
    assert [policy.next_wait(state, BUSY) for _ in range(3)] == [400, 400, None]


def test_a_policy_of_numbers():
    assert waits(RetryPolicy.bounded(0), BUSY) == [None]
    assert None not in waits(RetryPolicy.bounded(3), LATE, LATE, LATE)
    assert waits(RetryPolicy.bounded(3), BUSY, BUSY, BUSY, BUSY)[-1] is None
    assert waits(RetryPolicy.bounded(None, deadline=0.5), BUSY) == [None]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2", 2.0),
        ("0.25", 0.25),
        ("-1", 0.0),
        ("Thu, 01 Jan 2026 00:00:30 GMT", 30.0),
        ("Wed, 31 Dec 2025 23:59:00 GMT", 0.0),
        ("soon", None),
    ],
)
def test_retry_after_is_read_in_both_forms(value, seconds):
    assert read_retry_after({"Retry-After": value}, NOW) == seconds


def test_a_date_is_read_by_the_clock_of_the_server():
    headers = {"Retry-After": "Thu, 01 Jan 2026 09:00:05 GMT", "Date": "Thu, 01 Jan 2026 09:00:00 GMT"}
    assert read_retry_after(headers, NOW) == 5


def test_policies_are_values():
    policy = RetryPolicy()
    with pytest.raises(AttributeError):
        policy.clock = None
    assert policy.sleep is asyncio.sleep
