"""What the engine takes from code of others: environments, solvers, judges.

Whatever breaks the contract costs its sample, in one line that names the value, and never the run.
"""

import asyncio
import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from nemo_evaluator.environments.told import told
from nemo_evaluator.errors import EvaluationError, UsageError
from nemo_evaluator.types import ModelResponse, SeedResult, SolveResult, VerifyResult

log = logging.getLogger(__name__)

FAULTS = (Exception, asyncio.CancelledError, SystemExit)
"""What code of others may raise: also a cancellation of its own making, and `sys.exit`."""

SHOWN = 80


class Broken(Exception):
    """A value that the contract does not allow."""


def fault(error: BaseException) -> str:
    """`error`, of FAULTS, in one line. Raises it again if it is the end of the task that comes from outside."""
    if isinstance(error, asyncio.CancelledError) and is_ending():
        raise error
    return str(error) if isinstance(error, Broken) else told(error)


@contextmanager
def beforehand(what: str) -> Iterator[None]:
    """What fails before anything was asked is for the user to mend. Raises UsageError."""
    try:
        yield
    except EvaluationError:
        raise
    except FAULTS as error:
        raise UsageError(f"{what} fails: {fault(error)}") from error


@contextmanager
def afterwards(what: str) -> Iterator[None]:
    """What fails when all is done is worth a warning, and no answer."""
    try:
        yield
    except FAULTS as error:
        log.warning("%s fails: %s", what, fault(error))


def is_ending() -> bool:
    """The current task was cancelled, whether or not the code it ran took notice."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def checked_seed(seed: Any) -> SeedResult:
    _expect("seed", seed, SeedResult, "a SeedResult")
    _expect("seed: prompt", seed.prompt, str, "text")
    _expect("seed: metadata", seed.metadata, dict, "a dict")
    _expect("seed: messages", seed.messages, (list, tuple, type(None)), "a list of messages, or None")
    _expect("seed: system", seed.system, (str, type(None)), "text, or None")
    return seed  # type: ignore[no-any-return]


def checked_answer(result: Any) -> SolveResult:
    _expect("solve", result, SolveResult, "a SolveResult")
    if result.error is not None:
        return result  # type: ignore[no-any-return]
    _expect("solve: response", result.response, str, "text")
    _expect("solve: model_response", result.model_response, (ModelResponse, type(None)), "a ModelResponse, or None")
    _expect("solve: scoring_details", result.scoring_details, Mapping, "a dict")
    if result.reward is not None:
        finite("solve: reward", result.reward)
    return result  # type: ignore[no-any-return]


def checked_verdict(verdict: Any) -> VerifyResult:
    _expect("verify", verdict, VerifyResult, "a VerifyResult")
    _expect("verify: scoring_details", verdict.scoring_details, Mapping, "a dict")
    _expect("verify: metadata", verdict.metadata, Mapping, "a dict")
    return verdict  # type: ignore[no-any-return]


def finite(what: str, reward: Any) -> float:
    """Any kind of number; text that spells one is none."""
    try:
        value = math.nan if isinstance(reward, str | bytes) else float(reward)
    except Exception:  # `__float__` is code of others too
        value = math.nan
    if not math.isfinite(value):
        raise Broken(f"{what} is {shown(reward)}: a reward is a finite number")
    return value


def shown(value: Any) -> str:
    """A piece of its repr, or what it is if even that fails."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        return f"a {type(value).__name__} whose repr fails"
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def _expect(what: str, value: Any, kind: Any, wanted: str) -> None:
    if not isinstance(value, kind):
        raise Broken(f"{what} is {shown(value)}, a {type(value).__name__}: it must be {wanted}")
