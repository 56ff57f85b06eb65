"""Peak memory of a run over answers of 20 kB, 10,000 samples against 100,000.

python -m scripts.bench.memory
"""

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from nemo_evaluator.engine import ModelClient, run_evaluation, write_all
from nemo_evaluator.environments import EvalEnvironment, SeedResult, VerifyResult
from nemo_evaluator.solvers import ChatSolver
from scripts.bench.world import ROOT, fake_server, report

ANSWER_BYTES = 20_000


class Essays(EvalEnvironment):
    """Any number of short prompts."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    async def seed(self, idx: int) -> SeedResult:
        return SeedResult(f"Write at length about the number {idx}.", str(idx))

    async def verify(self, response: str, expected: str, **metadata: object) -> VerifyResult:
        return VerifyResult(1.0, response[:5])


async def run(url: str, samples: int) -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        solver = ChatSolver(ModelClient(url, "m", "", max_concurrent=64))
        bundle = await run_evaluation(Essays(samples), solver, max_concurrent=64, output_dir=Path(folder) / "out")
        write_all(bundle, Path(folder) / "out")
        assert bundle["n_results"] == samples
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def peak(url: str, samples: int) -> int:
    command = [sys.executable, "-m", "scripts.bench.memory", url, str(samples)]
    return int(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main() -> bool:
    with fake_server(mode="filler", size=ANSWER_BYTES) as url:
        small, large = peak(url, 10_000), peak(url, 100_000)
    measured = f"{small} MB -> {large} MB, grows by {large - small} MB"
    return report("memory, 10,000 -> 100,000 answers of 20 kB", measured, "< 100 MB", large - small < 100)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        asyncio.run(run(sys.argv[1], int(sys.argv[2])))
    else:
        sys.exit(0 if main() else 1)
