"""Lives of an evaluation, each a process of its own that is killed at a random moment.

    python -m tests.e2e.nursery URL FOLDER KILLS SEED

Everything is imported once and every life is a fork of that, so that two hundred of them take seconds. Prints the lives
it took, then exits; a life that ends on its own before it is killed ends the whole.
"""

import asyncio
import os
import random
import signal
import sys
import time
from pathlib import Path

from tenacity import wait_random

from nemo_evaluator.engine import ModelClient, run_evaluation, write_all
from nemo_evaluator.models import RetryPolicy
from nemo_evaluator.solvers import ChatSolver
from tests.harness.engine.worlds import Doubles

PROBLEMS, REPEATS = 1500, 2


async def live(url: str, folder: Path) -> None:
    retry = RetryPolicy(wait=wait_random(0, 0.05))
    async with ModelClient(url, "fake-model", "", timeout=0.5, max_concurrent=16, retry=retry, seed=1) as client:
        bundle = await run_evaluation(
            Doubles(PROBLEMS),
            ChatSolver(client),
            REPEATS,
            max_concurrent=16,
            output_dir=folder,
            existing="resume",
            max_error_rate=1,
        )
    write_all(bundle, folder)


def fork_life(url: str, folder: Path) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            asyncio.run(live(url, folder))
        finally:
            os._exit(0 if sys.exc_info() == (None, None, None) else 1)
    return pid


def main(url: str, folder: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    lives = 0
    for _ in range(kills):
        lives += 1
        pid = fork_life(url, folder)
        time.sleep(chance.uniform(0, 0.3))
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            break
    print(lives)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
