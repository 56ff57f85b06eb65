"""From Enter to the first new request, with 200,000 finished samples in the journal.

python -m scripts.bench.resume
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nemo_evaluator.engine import run_evaluation
from nemo_evaluator.environments import EvalEnvironment, SeedResult, VerifyResult
from nemo_evaluator.solvers import Solver, SolveResult
from scripts.bench.world import ROOT, report

FINISHED, MORE = 200_000, 10
PROMPT = "A question of a usual length, as benchmarks have them. " * 10
ANSWER = "An answer that thinks step by step for a while. " * 20


class Many(EvalEnvironment):
    def __len__(self) -> int:
        return FINISHED + MORE

    async def seed(self, idx: int) -> SeedResult:
        return SeedResult(f"{PROMPT}{idx}", str(idx), {"category": str(idx % 7)})

    async def verify(self, response: str, expected: str, **metadata: object) -> VerifyResult:
        return VerifyResult(1.0, expected, {"method": "bench"})


class Canned(Solver):
    """Says when it was first asked, for a bench of what comes before that."""

    def __init__(self) -> None:
        self.first_asked: float | None = None

    async def solve(self, task: SeedResult) -> SolveResult:
        self.first_asked = self.first_asked or time.time()
        return SolveResult(ANSWER)


async def run(folder: Path, problems: int) -> None:
    solver = Canned()
    await run_evaluation(Many(), solver, max_problems=problems, output_dir=folder, existing="resume")
    print(solver.first_asked)


def process(folder: Path, problems: int) -> float:
    """When the first request of a fresh process was made."""
    command = [sys.executable, "-m", "scripts.bench.resume", str(folder), str(problems)]
    return float(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main() -> bool:
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as place:
        folder = Path(place) / "out"
        process(folder, FINISHED)
        began = time.time()
        seconds = process(folder, FINISHED + MORE) - began
    return report("resume with 200,000 finished samples", f"first request after {seconds:.2f} s", "< 5 s", seconds < 5)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        asyncio.run(run(Path(sys.argv[1]), int(sys.argv[2])))
    else:
        sys.exit(0 if main() else 1)
