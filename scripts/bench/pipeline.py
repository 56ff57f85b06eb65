"""The whole pipeline (seed, request, journal, verify, files) over gsm8k, against the fake server.

scripts/testbed up hub; eval "$(scripts/testbed env)"; python -m scripts.bench.pipeline
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from nemo_evaluator.cli import loop
from nemo_evaluator.engine import ModelClient, ProgressTracker, run_evaluation, write_all
from nemo_evaluator.engine.ledger import Ledger
from nemo_evaluator.environments.registry import resolve
from nemo_evaluator.solvers import ChatSolver
from scripts.bench.world import bare_rate, fake_server, pin, report

ANSWER = "Six times seven is 42. The answer is 42."
REPEATS = 8
"""Of 1,319 problems: 10,552 samples."""


class Asking(ProgressTracker):
    """How long it took from the first request to the last verdict."""

    def start(self, benchmark: str, ledger: Ledger) -> None:
        self.began = time.perf_counter()

    def finish(self) -> None:
        self.seconds = time.perf_counter() - self.began


async def run(url: str, concurrency: int, **limits: Any) -> tuple[float, float, int]:
    """Seconds to the last file, seconds of asking, and samples."""
    solver, asking = ChatSolver(ModelClient(url, "m", "", max_concurrent=concurrency)), Asking()
    with tempfile.TemporaryDirectory() as folder:
        out, began = Path(folder) / "out", time.perf_counter()
        bundle = await run_evaluation(
            resolve("gsm8k"), solver, REPEATS, progress=asking, max_concurrent=concurrency, output_dir=out, **limits
        )
        write_all(bundle, out)
        seconds = time.perf_counter() - began
    assert set(bundle["benchmark"]["states"]) == {"scored"}
    return seconds, asking.seconds, bundle["n_results"]


async def throughput() -> bool:
    env = resolve("gsm8k")
    await env.prepare()
    body = {"model": "m", "messages": [{"role": "user", "content": (await env.seed(0)).prompt}]}
    with fake_server(answer=ANSWER) as url:
        bare, ours = [], []
        for _ in range(3):  # alternating, the best of each: whatever else the machine does then strikes both
            bare.append(await bare_rate(url, body, 10_000, 64))
            seconds, _, samples = await run(url, 64)
            ours.append(samples / seconds)
    share = max(ours) / max(bare)
    measured = f"{max(ours):,.0f} samples/s, {share:.2f} of a bare aiohttp loop ({max(bare):,.0f}/s)"
    holds = max(ours) >= 2500 and share >= 0.25
    return report("pipeline, 64 at once, no latency", measured, ">= 2,500/s and >= 0.25", holds)


async def latency() -> bool:
    """Of the ideal, in which every slot is always asking; a bare loop in the same run says what the machine can do."""
    env = resolve("gsm8k")
    await env.prepare()
    body = {"model": "m", "messages": [{"role": "user", "content": (await env.seed(0)).prompt}]}
    with fake_server(behaviours=[{"delay": 0.2}], answer=ANSWER) as url:
        runs = [await run(url, 512, max_problems=1250) for _ in range(2)]
        bare = await bare_rate(url, body, 10_000, 512)
    _, asking, samples = min(runs, key=lambda figures: figures[1])
    ideal = 512 / 0.2
    share = samples / asking / ideal
    measured = f"{asking:.2f} s for {samples:,}, {share:.2f} of the ideal (bare aiohttp {bare / ideal:.2f})"
    return report("pipeline, 512 at once, 200 ms latency", measured, ">= 0.9", share >= 0.9)


async def main() -> bool:
    return all([await throughput(), await latency()])


if __name__ == "__main__":
    if not os.environ.get("NEL_TEST_HUB"):
        sys.exit('No hub to read gsm8k from: scripts/testbed up hub && eval "$(scripts/testbed env)"')
    os.environ |= {"HF_ENDPOINT": os.environ["NEL_TEST_HUB"], "HF_HUB_DISABLE_XET": "1"}
    pin(0)
    sys.exit(0 if loop.run(main()) else 1)
