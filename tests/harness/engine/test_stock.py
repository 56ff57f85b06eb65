"""A bounded store between quick producers and slow consumers."""

import asyncio

from nemo_evaluator.engine.stock import PLACES_A_WAKE, Stock


async def test_what_goes_in_first_comes_out_first():
    stock = Stock(4)
    for number in range(3):
        await stock.put(number)
    assert [await stock.take() for _ in range(3)] == [0, 1, 2]


async def test_no_more_is_laid_in_than_there_are_places():
    stock, laid_in = Stock(3), []

    async def give():
        for number in range(10):
            await stock.put(number)
            laid_in.append(number)

    giver = asyncio.create_task(give())
    await asyncio.sleep(0.01)
    assert laid_in == [0, 1, 2]
    assert [await stock.take() for _ in range(10)] == list(range(10))
    await giver


async def test_a_giver_is_woken_for_many_places_at_once():
    size = 4 * PLACES_A_WAKE
    stock, woken = Stock(size), []

    async def give():
        for number in range(2 * size):
            if len(stock._items) >= size:
                woken.append(number)
            await stock.put(number)

    giver = asyncio.create_task(give())
    for _ in range(2 * size):
        await stock.take()
        await asyncio.sleep(0)
    await giver
    assert len(woken) <= size / PLACES_A_WAKE + 1


async def test_many_givers_and_takers_lose_and_double_nothing():
    stock, taken, numbers = Stock(5), [], iter(range(500))

    async def give():
        for number in numbers:
            await asyncio.sleep(0)
            await stock.put(number)

    async def take():
        while True:
            taken.append(await stock.take())
            await asyncio.sleep(0)

    takers = [asyncio.create_task(take()) for _ in range(7)]
    await asyncio.gather(*(give() for _ in range(3)))
    while len(taken) < 500:
        await asyncio.sleep(0)
    for taker in takers:
        taker.cancel()
    assert sorted(taken) == list(range(500))


async def test_one_who_gives_up_passes_the_turn_on():
    stock = Stock(1)
    first, second = (asyncio.create_task(stock.take()) for _ in range(2))
    await asyncio.sleep(0)
    await stock.put("only")
    first.cancel()
    assert await asyncio.wait_for(second, 180) == "only"


async def test_one_who_gave_up_is_passed_over():
    stock = Stock(1)
    first, second = (asyncio.create_task(stock.take()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await stock.put("only")
    assert await asyncio.wait_for(second, 180) == "only"
