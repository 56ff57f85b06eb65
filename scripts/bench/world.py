"""What the benches share: the fake server on the other core, the bare loop to compare with, and peak memory."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

ROOT = Path(__file__).resolve().parents[2]
Ask = Callable[[], Awaitable[object]]


def pin(core: int) -> None:
    """This process on one core, the server on the other."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core % len(cores)]})


@contextmanager
def fake_server(**settings: Any) -> Iterator[str]:
    command = [sys.executable, "-m", "tests.fakes.openai_server", "--no-log", "--settings", json.dumps(settings)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: pin(1)) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().removeprefix("url: ").strip() + "/v1"
        finally:
            process.terminate()


@dataclass(frozen=True)
class Cost:
    """Of one request, in seconds. Processor time holds still when others use the machine too; wall time does not."""

    wall: float
    processor: float


async def cost(ask: Ask, requests: int, concurrency: int) -> Cost:
    """Asks with `concurrency` workers; no worker waits for another."""
    left = iter(range(requests))

    async def work() -> None:
        for _ in left:
            await ask()

    began, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work() for _ in range(concurrency)))
    return Cost((time.perf_counter() - began) / requests, (time.process_time() - used) / requests)


async def rate(ask: Ask, requests: int, concurrency: int) -> float:
    """Requests a second."""
    return 1 / (await cost(ask, requests, concurrency)).wall


async def bare_cost(url: str, body: dict[str, Any], requests: int, concurrency: int) -> Cost:
    """What aiohttp does with nothing around it."""
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask() -> None:
            async with session.post(url + "/chat/completions", json=body) as response:
                await response.json()

        return await cost(ask, requests, concurrency)


async def bare_rate(url: str, body: dict[str, Any], requests: int, concurrency: int) -> float:
    return 1 / (await bare_cost(url, body, requests, concurrency)).wall


def report(name: str, measured: str, bar: str, holds: bool) -> bool:
    print(f"{'ok  ' if holds else 'MISS'}  {name:44} {measured:48} bar: {bar}", flush=True)
    return holds
