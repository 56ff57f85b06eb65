"""ModelClient against a bare aiohttp loop, both on one core, the fake server on the other.

python -m scripts.bench.client
"""

import sys

from nemo_evaluator.cli import loop
from nemo_evaluator.models import ModelClient
from scripts.bench.world import Cost, bare_cost, cost, fake_server, pin, report

PROMPT = "What is six times seven? Think step by step and end with the number."
BODY = {"model": "m", "temperature": 0.0, "max_tokens": 512, "messages": [{"role": "user", "content": PROMPT}]}
REQUESTS = 10_000


async def client_cost(url: str, concurrency: int) -> Cost:
    client = ModelClient(url, "m", "sk-not-a-real-key", 0.0, 512, max_concurrent=concurrency, environ={})
    async with client:
        return await cost(lambda: client.chat(PROMPT), REQUESTS, concurrency)


async def overhead() -> bool:
    with fake_server() as url:
        bare, ours = [], []
        for _ in range(3):  # alternating, the best of each: whatever else the machine does then strikes both
            bare.append(await bare_cost(url, BODY, REQUESTS, 64))
            ours.append(await client_cost(url, 64))
    wall = min(item.wall for item in bare) / min(item.wall for item in ours)
    processor = min(item.processor for item in bare) / min(item.processor for item in ours)
    measured = f"{wall:.2f} of the rate of a bare aiohttp loop, {processor:.2f} by processor time"
    return report("client, 64 at once, no latency", measured, ">= 1", wall >= 1)


async def latency() -> bool:
    ideal = 0.2 / 512
    with fake_server(behaviours=[{"delay": 0.2}]) as url:
        bare, ours = await bare_cost(url, BODY, REQUESTS, 512), await client_cost(url, 512)
    measured = f"{ideal / ours.wall:.2f} of the ideal (bare aiohttp {ideal / bare.wall:.2f})"
    return report("client, 512 at once, 200 ms latency", measured, ">= 0.9", ideal / ours.wall >= 0.9)


async def main() -> bool:
    return all([await overhead(), await latency()])


if __name__ == "__main__":
    pin(0)
    sys.exit(0 if loop.run(main()) else 1)
