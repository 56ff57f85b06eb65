"""Each stage has a limit of its own, and a slow one idles no other."""

import asyncio
import subprocess
import sys
from pathlib import Path

from nemo_evaluator.engine import attempt as attempt_module
from nemo_evaluator.engine import run_evaluation
from tests.harness.engine.worlds import Calculator, Doubles

ROOT = Path(__file__).parents[3]


class Gate(Doubles):
    """A verifier that waits until it is let through."""

    def __init__(self, size):
        super().__init__(size)
        self.open = asyncio.Event()
        self.in_verify = self.most_in_verify = 0

    async def verify(self, response, expected, **metadata):
        self.in_verify += 1
        self.most_in_verify = max(self.most_in_verify, self.in_verify)
        await self.open.wait()
        self.in_verify -= 1
        return await super().verify(response, expected, **metadata)


async def test_a_slow_verifier_never_idles_the_endpoint():
    """7.5 item 66: every question is asked although not one verdict is in."""
    env, solver = Gate(300), Calculator()
    running = asyncio.create_task(run_evaluation(env, solver, max_concurrent=4))
    async with asyncio.timeout(20):
        while len(solver.asked) < 300:
            await asyncio.sleep(0.01)
    assert not env.verified
    env.open.set()
    assert (await running)["benchmark"]["states"] == {"scored": 300}
    assert env.most_in_verify <= attempt_module.Limits().verify


async def test_answers_that_wait_for_a_verifier_wait_on_disk(monkeypatch, tmp_path):
    """The scores are right although almost no answer was kept in memory."""
    monkeypatch.setattr(attempt_module, "WAITING_BYTES", 2000)
    env, solver = Gate(200), Calculator(wrong=frozenset({5, 6}))
    running = asyncio.create_task(run_evaluation(env, solver, max_concurrent=4, output_dir=tmp_path))
    while len(solver.asked) < 200:
        await asyncio.sleep(0.01)
    env.open.set()
    bundle = await running
    assert [row["problem_idx"] for row in bundle["results"] if not row["reward"]] == [5, 6]
    assert len(solver.asked) == 200


async def test_no_more_requests_in_flight_than_asked_for():
    solver = Calculator(delay=0.005)
    await run_evaluation(Doubles(100), solver, max_concurrent=7)
    assert solver.most_in_hand == 7


async def test_slow_seeding_is_done_ahead_and_at_once():
    """7.5 item 65: seeding used to be one after the other."""

    class SlowSeeds(Doubles):
        in_seed = most_in_seed = 0

        async def seed(self, idx):
            self.in_seed += 1
            self.most_in_seed = max(self.most_in_seed, self.in_seed)
            await asyncio.sleep(0.005)
            self.in_seed -= 1
            return await super().seed(idx)

    env = SlowSeeds(100)
    await run_evaluation(env, Calculator(), max_concurrent=8)
    assert env.most_in_seed == attempt_module.Limits().seed


async def test_seeding_runs_only_a_bounded_window_ahead():
    """EC-01, EC-17: a large benchmark must not be seeded, or opened as coroutines, before answers come."""

    class Stuck(Calculator):
        async def solve(self, task):
            self.asked.append(0)
            await asyncio.sleep(60)

    env, stop, solver = Doubles(100_000), asyncio.Event(), Stuck()
    running = asyncio.create_task(run_evaluation(env, solver, max_concurrent=8, stop=stop))
    while len(solver.asked) < 8:
        await asyncio.sleep(0.01)
    seeded, tasks = len(env.seeded), len(asyncio.all_tasks())
    stop.set()
    await running
    assert seeded < 100 and tasks < 100


TALKATIVE = """
import asyncio, resource, sys
from nemo_evaluator.engine import run_evaluation
from nemo_evaluator.solvers import Solver, SolveResult
from tests.harness.engine.worlds import Doubles

class Talkative(Solver):
    async def solve(self, task):
        return SolveResult("x" * 20_000 + task.expected_answer)

asyncio.run(run_evaluation(Doubles(int(sys.argv[1])), Talkative(), max_concurrent=16))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def peak_megabytes(samples):
    done = subprocess.run(
        [sys.executable, "-c", TALKATIVE, str(samples)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_finished_samples_do_not_stay_in_memory():
    """7.5 item 61, EC-17: 160 MB of answers against 20 MB. The window may be fuller, what is finished is gone."""
    assert peak_megabytes(8000) - peak_megabytes(1000) < 60
