"""ModelClient against a bare aiohttp loop, both on one core against the fake server on the other.

    python -m scripts.bench.client [--requests 20000] [--latency-requests 10000]

Numbers are ratios of one run: of the bare loop at 64 connections, and of the ideal at 512 with 200 ms of latency.
"""

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
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


async def rate(ask: Ask, requests: int, concurrency: int) -> float:
    """Requests a second by `concurrency` workers; no worker waits for another."""
    left = iter(range(requests))

    async def work() -> None:
        for _ in left:
            await ask()

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(concurrency)))
    return requests / (time.perf_counter() - began)


async def bare_rate(url: str, requests: int, concurrency: int) -> float:
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask() -> None:
            async with session.post(url + "/chat/completions", json=BODY) as response:
                await response.json()

        return await rate(ask, requests, concurrency)


async def client_rate(url: str, requests: int, concurrency: int) -> float:
    client = ModelClient(
        url, "m", "sk-not-a-real-key", temperature=0.0, max_tokens=512, max_concurrent=concurrency, environ={}
    )
    async with client:
        return await rate(lambda: client.chat(PROMPT), requests, concurrency)


async def measure_overhead(requests: int) -> None:
    """Alternating rounds, the best of each: whatever else the machine does then strikes both."""
    with fake_server("{}") as url:
        bare, ours = [], []
        for _ in range(3):
            bare.append(await bare_rate(url, requests, 64))
            ours.append(await client_rate(url, requests, 64))
    print(f"64 connections, no latency: bare aiohttp {max(bare):,.0f}/s, client {max(ours):,.0f}/s")
    print(f"ratio: {max(ours) / max(bare):.2f}")


async def measure_latency(requests: int) -> None:
    delay, concurrency = 0.2, 512
    ideal = -(-requests // concurrency) * delay
    with fake_server('{"behaviours": [{"delay": 0.2}]}') as url:
        bare = requests / await bare_rate(url, requests, concurrency)
        ours = requests / await client_rate(url, requests, concurrency)
    print(f"{concurrency} connections, {delay:.1f} s latency, {requests:,} requests: ideal {ideal:.2f} s, ", end="")
    print(f"bare aiohttp {bare:.2f} s, client {ours:.2f} s")
    print(f"of the ideal: bare {ideal / bare:.2f}, client {ideal / ours:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--latency-requests", type=int, default=10_000)
    args = parser.parse_args()
    uvloop.run(measure_overhead(args.requests))
    uvloop.run(measure_latency(args.latency_requests))


if __name__ == "__main__":
    main()
