"""One timer for the time limits of many tasks; each of them behaves as `asyncio.timeout` does."""

import asyncio

import pytest

from nemo_evaluator.models.deadlines import Deadlines


async def held(deadlines, event):
    with deadlines.begin():
        await event.wait()


async def test_a_task_that_takes_longer_is_a_timeout():
    with pytest.raises(TimeoutError):
        await held(Deadlines(0.01), asyncio.Event())
    assert asyncio.current_task().cancelling() == 0


async def test_tasks_end_one_by_one_as_their_time_runs_out():
    deadlines, never = Deadlines(0.05), asyncio.Event()
    first = asyncio.create_task(held(deadlines, never))
    await asyncio.sleep(0.03)
    second = asyncio.create_task(held(deadlines, never))
    await asyncio.wait([first, second], return_when=asyncio.FIRST_COMPLETED)
    assert first.done() and not second.done()
    assert [type(error) for error in await asyncio.gather(first, second, return_exceptions=True)] == [TimeoutError] * 2


async def test_a_task_that_is_done_in_time_is_left_alone():
    deadlines, event = Deadlines(0.02), asyncio.Event()
    event.set()
    await held(deadlines, event)
    with pytest.raises(TimeoutError):
        await held(deadlines, asyncio.Event())  # the timer that was set for the first serves the second
    await asyncio.sleep(0.03)
    await held(deadlines, event)  # and the next one begins without a timer


async def test_a_cancellation_from_elsewhere_stays_one():
    task = asyncio.create_task(held(Deadlines(60), asyncio.Event()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_limits_can_be_nested():
    outer, inner = Deadlines(0.01), Deadlines(60)
    with pytest.raises(TimeoutError), outer.begin(), inner.begin():
        await asyncio.sleep(60)
