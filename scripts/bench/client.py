"""ModelClient against a bare aiohttp loop, both on one core against the fake server on the other.

    python -m scripts.bench.client [--requests 10000] [--latency-requests 10000]

Numbers are ratios of one run: of the bare loop at 64 connections, and of the ideal at 512 with 200 ms of latency.
"""

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import uvloop

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from nemo_evaluator.models import ModelClient  # noqa: E402

PROMPT = "What is six times seven? Think step by step and end with the number."
BODY = {"model": "m", "temperature": 0.0, "max_tokens": 512, "messages": [{"role": "user", "content": PROMPT}]}
Ask = Callable[[], Awaitable[object]]


@contextmanager
def fake_server(settings: str) -> Iterator[str]:
    command = [sys.executable, "-m", "tests.fakes.openai_server", "--no-log", "--settings", settings]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().removeprefix("url: ").strip() + "/v1"
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


async def bare_cost(url: str, requests: int, concurrency: int) -> Cost:
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask() -> None:
            async with session.post(url + "/chat/completions", json=BODY) as response:
                await response.json()

        return await cost(ask, requests, concurrency)


async def client_cost(url: str, requests: int, concurrency: int) -> Cost:
    client = ModelClient(
        url, "m", "sk-not-a-real-key", temperature=0.0, max_tokens=512, max_concurrent=concurrency, environ={}
    )
    async with client:
        return await cost(lambda: client.chat(PROMPT), requests, concurrency)


async def measure_overhead(requests: int) -> None:
    """Alternating rounds, the best of each: whatever else the machine does then strikes both."""
    with fake_server("{}") as url:
        bare, ours = [], []
        for _ in range(3):
            bare.append(await bare_cost(url, requests, 64))
            ours.append(await client_cost(url, requests, 64))
    bare_wall, ours_wall = min(item.wall for item in bare), min(item.wall for item in ours)
    bare_cpu, ours_cpu = min(item.processor for item in bare), min(item.processor for item in ours)
    print(f"64 connections, no latency: bare aiohttp {1 / bare_wall:,.0f}/s, client {1 / ours_wall:,.0f}/s")
    print(f"ratio of rates {bare_wall / ours_wall:.2f}, of processor time a request {bare_cpu / ours_cpu:.2f}")


async def measure_latency(requests: int) -> None:
    delay, concurrency = 0.2, 512
    ideal = -(-requests // concurrency) * delay
    with fake_server('{"behaviours": [{"delay": 0.2}]}') as url:
        bare = requests * (await bare_cost(url, requests, concurrency)).wall
        ours = requests * (await client_cost(url, requests, concurrency)).wall
    print(f"{concurrency} connections, {delay:.1f} s latency, {requests:,} requests: ideal {ideal:.2f} s, ", end="")
    print(f"bare aiohttp {bare:.2f} s, client {ours:.2f} s")
    print(f"of the ideal: bare {ideal / bare:.2f}, client {ideal / ours:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--latency-requests", type=int, default=10_000)
    args = parser.parse_args()
    uvloop.run(measure_overhead(args.requests))
    uvloop.run(measure_latency(args.latency_requests))


if __name__ == "__main__":
    main()
