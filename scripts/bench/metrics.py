"""Seconds that the scores of 224,000 rewards take, and how many times faster that is than a bootstrap in a loop."""

import random
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from nemo_evaluator.metrics.breakdown import breakdowns
from nemo_evaluator.metrics.summary import summarise

REWARDS = 224_000
BAR_SECONDS = 0.5
LOOP_SUBSET = 1_000
RESAMPLES = 2_000


def main() -> None:
    generator = np.random.default_rng(0)
    loop_seconds = seconds(lambda: loop_bootstrap(LOOP_SUBSET)) * REWARDS / LOOP_SUBSET
    print(f"bootstrap as a Python loop, extrapolated from {LOOP_SUBSET} rewards: {loop_seconds:.1f} s")
    for n_problems, n_repeats in ((14_000, 16), (REWARDS, 1)):
        problem, repeat = np.divmod(np.arange(n_problems * n_repeats), n_repeats)
        binary = (generator.random(problem.size) < 0.7).astype(float)
        for kind, reward in (("0/1", binary), ("continuous", generator.random(problem.size))):
            score = partial(summarise, problem, repeat, reward, n_repeats=n_repeats)
            spent = min(seconds(score) for _ in range(3))
            verdict = "ok" if spent < BAR_SECONDS else f"over the bar of {BAR_SECONDS} s"
            print(f"{n_problems} problems x {n_repeats}, {kind}: {spent:.3f} s, {loop_seconds / spent:.0f}x, {verdict}")
    labels = [f"category {number % 40}" for number in range(REWARDS)]
    spent = seconds(lambda: breakdowns({"category": labels}, problem, reward))
    print(f"breakdown of {REWARDS} continuous rewards into 40 groups: {spent:.3f} s")


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def loop_bootstrap(size: int) -> list[float]:
    rewards = [float(random.random() < 0.7) for _ in range(size)]
    return sorted(sum(random.choices(rewards, k=size)) / size for _ in range(RESAMPLES))


if __name__ == "__main__":
    main()
