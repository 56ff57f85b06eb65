"""The last lines of a run."""

from pathlib import Path

import pytest

from nemo_evaluator.cli.summary import summary_lines
from nemo_evaluator.engine import run_evaluation
from tests.harness.engine.worlds import Calculator, Doubles


async def summary(env, solver, **settings):
    return summary_lines(env.name, await run_evaluation(env, solver, **settings), Path("eval-x.json"))


async def test_a_score_of_one_repeat_has_its_interval():
    """7.7 item 83: it was blank for one repeat."""
    (first, *_) = await summary(Doubles(100), Calculator(wrong=frozenset(range(50))))
    assert first == "Doubles: pass@1 0.5000 [95 % CI 0.4038, 0.5962]"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (range(100), "pass@1 0.0000 [95 % CI 0.0000, 0.0370]"),
        (range(0), "pass@1 1.0000 [95 % CI 0.9630, 1.0000]"),
    ],
)
async def test_a_bound_of_exactly_0_is_a_bound(wrong, said):
    """7.7 item 83: it was blank then, too."""
    (first, *_) = await summary(Doubles(100), Calculator(wrong=frozenset(wrong)))
    assert first == f"Doubles: {said}"


async def test_states_tokens_rate_and_place_follow():
    lines = await summary(Doubles(4), Calculator())
    assert lines[1] == "  4 samples, scored 4, errors 0"
    assert lines[2].startswith("  tokens not reported, ") and lines[3] == "  eval-x.json"
