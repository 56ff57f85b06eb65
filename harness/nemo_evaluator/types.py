"""The nouns that everything else passes around. No I/O, no imports from the rest of the package."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class SeedResult:
    """What an environment asks: one problem, ready to be sent to a model."""

    prompt: str
    expected_answer: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Free columns: category, difficulty, aliases. They reach the verifier and results.jsonl."""
    messages: list[dict[str, Any]] | None = None
    """Chat messages to send instead of `prompt` on a chat endpoint."""
    system: str | None = None
    """The benchmark's own system prompt; a solver's system prompt replaces it."""
    repeat: int = 0
    """Which repeat of the problem this is. Set by the engine, so that a solver can vary the sampling seed."""


@dataclass
class VerifyResult:
    """What an environment makes of an answer."""

    reward: float
    """0.0 is wrong, 1.0 is right."""
    extracted_answer: str | None = None
    scoring_details: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class ModelResponse:
    """One reply of a model, normalised over servers."""

    content: str
    """The final answer only; reasoning that the server separated is in `reasoning_content`."""
    model: str = ""
    finish_reason: str = ""
    prompt_tokens: int | None = None
    """None when the server reported no usage: unknown is not zero. The same holds for the other counts."""
    completion_tokens: int | None = None
    total_tokens: int | None = None
    reasoning_tokens: int | None = None
    latency_ms: float = 0.0
    """Of the attempt that succeeded, from sending the request to the last byte."""
    raw_response: dict[str, Any] = field(default_factory=dict)
    reasoning_content: str | None = None
    request_prompt: str = ""
    request_system: str | None = None
    """The system prompt that really went out."""
    retries: int = 0


@dataclass
class SolveResult:
    """What a solver did with a problem."""

    response: str
    model_response: ModelResponse | None = None
    trajectory: list[dict[str, Any]] | None = None
    reward: float | None = None
    """If set, the environment is not asked to verify."""
    scoring_details: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    """If set, the sample has no answer: it ends as `error:<error_kind>` and is asked again by --resume."""
    error_kind: str | None = None


@dataclass
class StepRecord:
    """Complete record for one seed → model → verify cycle."""

    problem_idx: int
    repeat: int
    prompt: str
    expected_answer: str
    model_response: ModelResponse | None = None
    reward: float | None = None
    """None when the sample has no score: an error is not a wrong answer."""
    extracted_answer: str | None = None
    scoring_method: str = ""
    scoring_details: dict[str, Any] = field(default_factory=dict)
    seed_ms: float = 0.0
    model_ms: float = 0.0
    verify_ms: float = 0.0
    total_ms: float = 0.0
    model_error: str | None = None
    state: str = ""
    """scored, truncated, empty or error:<kind>."""
    timestamp: str = ""
    """ISO 8601, of the answer."""
    messages: list[dict[str, Any]] | None = None
    system_prompt: str | None = None
    """The one that really went out."""
    seed_metadata: dict[str, Any] = field(default_factory=dict)
    failure_category: str | None = None
    retries: int = 0
    trajectory: list[dict[str, Any]] | None = None
