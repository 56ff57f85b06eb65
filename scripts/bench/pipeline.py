"""The whole pipeline (seed, request, journal, verify, files) against the fake server.

python -m scripts.bench.pipeline
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from nemo_evaluator.cli import loop
from nemo_evaluator.engine import ModelClient, run_evaluation, write_all
from nemo_evaluator.environments.registry import resolve
from nemo_evaluator.solvers import ChatSolver
from scripts.bench.world import bare_rate, fake_server, pin, report

REPEATS = 170
"""Of the sixty problems: 10,200 samples."""


async def run(url: str, concurrency: int, max_samples: int | None = None, **client: Any) -> tuple[float, int]:
    """Seconds, to the last file, and samples."""
    repeats = REPEATS if max_samples is None else max_samples // 60 + 1
    solver = ChatSolver(ModelClient(url, "m", "", max_concurrent=concurrency, **client))
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        bundle = await run_evaluation(
            resolve("tiny_arithmetic"), solver, repeats, max_concurrent=concurrency, output_dir=Path(folder) / "out"
        )
        write_all(bundle, Path(folder) / "out")
        seconds = time.perf_counter() - began
    assert bundle["benchmark"]["states"] == {"scored": repeats * 60}
    return seconds, repeats * 60


async def throughput() -> bool:
    prompt = (await tiny_prompt())[:2000]
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}]}
    with fake_server(answer="Six times seven is 42.\nAnswer: 42") as url:
        bare, ours = [], []
        for _ in range(3):  # alternating, the best of each: whatever else the machine does then strikes both
            bare.append(await bare_rate(url, body, 10_000, 64))
            seconds, samples = await run(url, 64)
            ours.append(samples / seconds)
    share = max(ours) / max(bare)
    measured = f"{max(ours):,.0f} samples/s, {share:.2f} of a bare aiohttp loop ({max(bare):,.0f}/s)"
    holds = max(ours) >= 2500 and share >= 0.25
    return report("pipeline, 64 at once, no latency", measured, ">= 2,500/s and >= 0.25", holds)


async def latency() -> bool:
    with fake_server(behaviours=[{"delay": 0.2}], answer="Answer: 42") as url:
        seconds, samples = min([await run(url, 512, 9_960) for _ in range(2)])
    ideal = -(-samples // 512) * 0.2
    measured = f"{seconds:.2f} s for {samples:,}, {ideal / seconds:.2f} of the ideal"
    return report("pipeline, 512 at once, 200 ms latency", measured, ">= 0.9", ideal / seconds >= 0.9)


async def tiny_prompt() -> str:
    env = resolve("tiny_arithmetic")
    await env.prepare()
    return (await env.seed(0)).prompt


async def main() -> bool:
    return all([await throughput(), await latency()])


if __name__ == "__main__":
    pin(0)
    sys.exit(0 if loop.run(main()) else 1)
