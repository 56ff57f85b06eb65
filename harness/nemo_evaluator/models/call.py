"""One request to a model through all its attempts, and what becomes of many."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import orjson
from tenacity import RetryCallState

from nemo_evaluator.errors import UsageError
from nemo_evaluator.models.payload import Dialect, Generation, Messages, Protocol
from nemo_evaluator.models.reply import Reading, text_of


@dataclass(slots=True)
class Call:
    """One request to the model through all its attempts."""

    protocol: Protocol
    question: dict[str, Any]
    """`messages` or `prompt`, and what only this call asks for."""
    generation: Generation
    reading: Reading
    dialect: Dialect
    retries: RetryCallState | None = None
    started: float | None = None
    attempts: int = 0
    was_stale: bool = False


@dataclass(slots=True)
class Tally:
    """What became of the requests of one client."""

    requests: int = 0
    retries: int = 0
    stale_connections: int = 0
    over_budget: int = 0
    """Answers longer than max_tokens: the server does not count reasoning as OpenAI does."""
    early_stops: int = 0
    """Answers that a stop string may have ended in their first characters."""
    errors: Counter[str] = field(default_factory=Counter)


def strings(stop: list[str] | str | None) -> tuple[str, ...]:
    return (stop,) if isinstance(stop, str) else tuple(stop or ())


def compiled(pattern: str | None) -> re.Pattern[str] | None:
    if pattern is None:
        return None
    try:
        return re.compile(pattern, re.DOTALL)
    except re.error as error:
        raise UsageError(f"reasoning_pattern {pattern!r} is not a regular expression: {error}.") from None


def to_bytes(body: dict[str, Any]) -> bytes:
    """orjson refuses what is not valid Unicode (a lone surrogate, cut out of an emoji); escaped, it can be sent."""
    try:
        return orjson.dumps(body)
    except TypeError:
        return json.dumps(body).encode()


def last_text(messages: Messages) -> str:
    content = messages[-1].get("content") if messages else ""
    return text_of(content)


def leading_system(messages: Messages) -> str | None:
    if messages and messages[0].get("role") in ("system", "developer"):
        return text_of(messages[0].get("content"))
    return None
