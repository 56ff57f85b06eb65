"""The function that judges an answer: what it sees, how it is called, and what its verdict is worth."""

import asyncio
import inspect
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any

from nemo_evaluator.errors import EvaluationError, UsageError
from nemo_evaluator.types import VerifyResult

SLOW_SECONDS, SLOW_CALLS = 0.02, 3
"""A scorer that takes longer so often in a row is called in a thread from then on, so that it cannot hold the event
loop. Not after one such call: on a busy machine the quickest function is sometimes not let through for so long."""
VERY_SLOW_SECONDS = 0.2
"""Once is enough."""


@dataclass(frozen=True, slots=True)
class ScorerInput:
    """What a scorer sees of one sample."""

    response: str
    """Without the thinking (see `strip_reasoning`)."""
    target: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    """`extra` and the unknown keywords of `@benchmark`, overlaid by the params of the run."""
    sandbox: Any = None


class Scorer:
    """A user's scoring function, sync or async; calling it calls the function."""

    def __init__(self, function: Callable[[ScorerInput], Any]) -> None:
        update_wrapper(self, function)
        self.function = function
        self._slow_in_a_row = 0

    def __call__(self, sample: ScorerInput) -> Any:
        return self.function(sample)

    async def score(self, sample: ScorerInput) -> Any:
        if self._slow_in_a_row >= SLOW_CALLS:
            verdict = await asyncio.to_thread(self.function, sample)
        else:
            started = time.perf_counter()
            verdict = self.function(sample)
            self._note(time.perf_counter() - started)
        return await verdict if inspect.isawaitable(verdict) else verdict

    def _note(self, seconds: float) -> None:
        if seconds > VERY_SLOW_SECONDS:
            self._slow_in_a_row = SLOW_CALLS
        elif seconds > SLOW_SECONDS:
            self._slow_in_a_row += 1
        else:
            self._slow_in_a_row = 0


def scorer(function: Callable[[ScorerInput], Any]) -> Scorer:
    """Mark a function as a scorer: it takes a `ScorerInput` and returns a dict, a bool or a float."""
    parameters = inspect.signature(function).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if len(needed) != 1:
        raise UsageError(
            f"Scorer {function.__name__!r} must take one argument, a ScorerInput; it takes {len(needed)}: "
            f"{', '.join(p.name for p in needed) or 'none'}."
        )
    return Scorer(function)


def as_result(name: str, verdict: Any) -> VerifyResult:
    details = {"correct": verdict} if isinstance(verdict, (bool, int, float)) else verdict
    if not isinstance(details, dict) or not details:
        raise EvaluationError(
            f"The scorer of {name!r} returned {verdict!r}. Return a dict with 'correct' or 'reward', a bool or a float."
        )
    key = next((key for key in ("correct", "reward") if key in details), next(iter(details)))
    extracted = details.get("extracted")
    return VerifyResult(
        reward=_as_reward(name, key, details[key]),
        extracted_answer=None if extracted is None else str(extracted),
        scoring_details={"method": f"byob_{name}", **details},
    )


def _as_reward(name: str, key: str, value: Any) -> float:
    """None, NaN and words are no verdict: they cost the sample, they never become a 0."""
    try:
        reward = float(value)
    except (TypeError, ValueError):
        reward = math.nan
    if not math.isfinite(reward):
        raise EvaluationError(
            f"The scorer of {name!r} returned {key}={value!r}, which is not a reward. Return a number."
        )
    return reward
