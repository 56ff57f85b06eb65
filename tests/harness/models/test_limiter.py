import asyncio
import time

import pytest

from nemo_evaluator.models import AdaptiveLimiter


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


async def held(limiter, count):
    """Takes `count` slots and returns their tickets."""
    return [await limiter.acquire() for _ in range(count)]


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_no_more_than_the_limit_are_in_flight():
    limiter, running, peak = AdaptiveLimiter(3), 0, 0

    async def work():
        nonlocal running, peak
        async with limiter.slot():
            running += 1
            peak = max(peak, running)
            await asyncio.sleep(0)
            running -= 1

    await asyncio.gather(*(work() for _ in range(20)))
    assert (peak, limiter.state()["peak_in_flight"], limiter.state()["in_flight"]) == (3, 3, 0)


async def test_first_come_first_served():
    limiter, order = AdaptiveLimiter(1), []

    async def work(number):
        async with limiter.slot():
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(work(number) for number in range(10)))
    assert order == list(range(10))


async def test_a_newcomer_does_not_overtake_those_who_wait():
    limiter, order = AdaptiveLimiter(1), []
    await limiter.acquire()

    async def work(name):
        async with limiter.slot():
            order.append(name)

    first = asyncio.create_task(work("first"))
    await settle()
    limiter.release()
    await work("newcomer")
    await first
    assert order == ["first", "newcomer"]


async def test_a_cancelled_waiter_leaves_no_hole():
    limiter = AdaptiveLimiter(1)
    await limiter.acquire()
    waiter = asyncio.create_task(limiter.acquire())
    await settle()
    limiter.release()
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    await asyncio.wait_for(limiter.acquire(), 180)
    assert limiter.state()["in_flight"] == 1


async def test_refusals_of_one_round_halve_the_limit_once():
    limiter = AdaptiveLimiter(16)
    for ticket in await held(limiter, 16):
        limiter.throttled(ticket, is_quota=False)
        limiter.release()
    assert (limiter.limit, limiter.state()["decreases"]) == (8, 1)


async def test_the_next_round_halves_it_again_but_never_below_one():
    limiter = AdaptiveLimiter(4)
    for _ in range(5):
        for ticket in await held(limiter, limiter.limit):
            limiter.throttled(ticket, is_quota=False)
            limiter.release()
    assert (limiter.limit, limiter.state()["decreases"]) == (1, 5)


async def test_a_round_of_successes_adds_one_up_to_the_maximum():
    limiter = AdaptiveLimiter(6)
    for ticket in await held(limiter, 6):
        limiter.throttled(ticket, is_quota=False)
        limiter.release()
    for _ in range(4):
        limiter.succeeded()
    assert limiter.limit == 4
    for _ in range(100):
        limiter.succeeded()
    assert limiter.limit == 6


async def test_a_pause_holds_everyone_and_then_lets_them_go():
    clock = Clock()
    limiter = AdaptiveLimiter(2, clock)
    limiter.pause_until(clock.now + 0.01)
    waiter = asyncio.create_task(limiter.acquire())
    await settle()
    assert not waiter.done()
    clock.now += 0.01
    await asyncio.wait_for(waiter, 180)
    assert limiter.state()["throttled_seconds"] == pytest.approx(0.01)


def test_a_pause_outlives_the_event_loop_that_met_it():
    limiter = AdaptiveLimiter(1)
    limiter.pause_until(time.monotonic() + 0.1)

    async def acquire(patience):
        return await asyncio.wait_for(limiter.acquire(), patience)

    with pytest.raises(TimeoutError):
        asyncio.run(acquire(0.01))
    assert asyncio.run(acquire(180)) == 1


async def test_a_pause_is_never_shortened():
    clock = Clock()
    limiter = AdaptiveLimiter(2, clock)
    limiter.pause_until(clock.now + 60)
    limiter.pause_until(clock.now + 1)
    assert limiter.state()["throttled_seconds"] == 60


async def test_after_a_quota_refusal_starts_are_spaced_by_the_rate_that_succeeded():
    clock = Clock()
    limiter = AdaptiveLimiter(8, clock)
    tickets = await held(limiter, 8)
    for _ in range(7):
        limiter.succeeded()
    clock.now += 1
    limiter.throttled(tickets[-1], is_quota=True)
    assert limiter.state()["paced_per_second"] == pytest.approx(7)


async def test_pacing_fades_with_success():
    clock = Clock()
    limiter = AdaptiveLimiter(8, clock)
    (ticket,) = await held(limiter, 1)
    limiter.succeeded()
    clock.now += 1
    limiter.throttled(ticket)
    for _ in range(1000):
        limiter.succeeded()
    assert limiter.state()["paced_per_second"] is None


async def test_ec26_what_was_really_in_flight_is_reported():
    clock = Clock()
    limiter = AdaptiveLimiter(64, clock)
    await held(limiter, 4)
    clock.now += 3
    limiter.release()
    limiter.release()
    clock.now += 1
    limiter.release()
    limiter.release()
    clock.now += 100
    state = limiter.state()
    assert (state["peak_in_flight"], state["mean_in_flight"]) == (4, 3.5)


async def test_a_limit_found_later_only_lowers():
    limiter = AdaptiveLimiter(8)
    limiter.lower_to(4)
    limiter.lower_to(100)
    assert (limiter.limit, limiter.state()["max_limit"]) == (4, 4)


def test_a_limiter_without_room_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        AdaptiveLimiter(0)
