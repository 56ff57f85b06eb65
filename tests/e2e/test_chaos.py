"""Killed two hundred times at random moments, against a server that hangs, drops, lies and throttles: after that the
results are those of an unbroken run, each sample once, and nothing that was finished was asked again."""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from nemo_evaluator.engine import run_evaluation
from tests.e2e.nursery import PROBLEMS, REPEATS, live
from tests.fakes.openai_server import Behaviour, FakeServer, When
from tests.harness.engine.worlds import Calculator, Doubles, right_answer

ROOT = Path(__file__).parents[2]
KILLS, ROUNDS = 40, 5

HARM = (
    Behaviour(jitter=0.08),
    Behaviour(hang="headers", when=When(share=0.003)),
    Behaviour(drop="headers", when=When(share=0.01)),
    Behaviour(drop="body", when=When(share=0.01)),
    Behaviour(reply="truncated", when=When(share=0.01)),
    Behaviour(reply="no_choices", when=When(share=0.01)),
    Behaviour(status=429, when=When(share=0.01)),
    Behaviour(status=503, retry_after=0, when=When(share=0.01)),
    Behaviour(closes_silently=True, when=When(share=0.02)),
)


def answered(folder: Path) -> Counter[tuple[int, int]]:
    """How often each sample has an answer in the journal; a torn last line is none."""
    lines = (folder / "inference_log.jsonl").read_bytes().split(b"\n")[:-1]
    rows = [json.loads(line) for line in lines]
    return Counter((row["problem_idx"], row["repeat"]) for row in rows if row.get("state") == "answered")


def rows(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("round_", range(ROUNDS))
async def test_killed_at_random_moments_nothing_is_lost_and_nothing_asked_twice(tmp_path, round_):
    folder = tmp_path / "run"
    async with FakeServer(*HARM, answer=right_answer, seed=round_) as server:
        lives = await in_a_process(server.url, folder, round_)
        before = answered(folder)
        await live(server.url, folder)
        await live(server.url, folder)  # whatever ended in an error is asked again
    assert lives == KILLS, "the run was over before it was killed often enough: make it longer"
    assert before.total() > 0 and set(answered(folder).values()) == {1}
    assert set(before) <= set(answered(folder))
    assert without_times(rows(folder)) == without_times(await unbroken())


async def in_a_process(url: str, folder: Path, seed: int) -> int:
    command = [sys.executable, "-m", "tests.e2e.nursery", url, str(folder), str(KILLS), str(seed)]
    environ = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=environ, stdout=subprocess.PIPE)
    out, _ = await process.communicate()
    return int(out)


async def unbroken() -> list[dict]:
    return list((await run_evaluation(Doubles(PROBLEMS), Calculator(), REPEATS))["results"])


def without_times(some_rows: list[dict]) -> list[tuple]:
    kept = ("problem_idx", "repeat", "reward", "state", "extracted_answer", "prompt", "model_response", "metadata")
    return [tuple(json.dumps(row[key]) for key in kept) for row in some_rows]
