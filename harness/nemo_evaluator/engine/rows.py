"""The lines of the journal. Pure."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from nemo_evaluator.engine.plan import Attempt
from nemo_evaluator.results.jsonl import as_text
from nemo_evaluator.types import ModelResponse, SeedResult, SolveResult, VerifyResult


@dataclass(slots=True)
class Seeded:
    """An attempt with its prompt."""

    attempt: Attempt
    seed: SeedResult
    seed_ms: float


def answer_row(seeded: Seeded, state: str, result: SolveResult, model_ms: float) -> dict[str, Any]:
    seed, reply = seeded.seed, result.model_response or ModelResponse(result.response)
    return _head(seeded, state, model_ms) | {
        "model": reply.model,
        "finish_reason": reply.finish_reason,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "total_tokens": reply.total_tokens,
        "reasoning_tokens": reply.reasoning_tokens,
        "latency_ms": round(reply.latency_ms, 3),
        "retries": reply.retries,
        "prompt": seed.prompt,
        "messages": seed.messages,
        "system_prompt": reply.request_system,
        "expected_answer": as_text(seed.expected_answer),
        "seed_metadata": seed.metadata,
        "response": result.response,
        "reasoning_content": reply.reasoning_content,
        "trajectory": result.trajectory,
        "solver_reward": result.reward,
        "solver_scoring_details": result.scoring_details,
    }


def error_row(seeded: Seeded, state: str, message: str, model_ms: float) -> dict[str, Any]:
    return _head(seeded, state, model_ms) | {
        "error": message,
        "prompt": seeded.seed.prompt,
        "expected_answer": as_text(seeded.seed.expected_answer),
        "seed_metadata": seeded.seed.metadata,
    }


def score_row(attempt: Attempt, reward: float, verdict: VerifyResult, verify_ms: float) -> dict[str, Any]:
    return {
        "problem_idx": attempt.problem_idx,
        "repeat": attempt.repeat,
        "reward": reward,
        "verify_ms": round(verify_ms, 3),
        "extracted_answer": None if verdict.extracted_answer is None else as_text(verdict.extracted_answer),
        "scoring_details": verdict.scoring_details,
        "metadata": verdict.metadata,
    }


def scorer_error_row(attempt: Attempt, message: str, verify_ms: float) -> dict[str, Any]:
    return {
        "problem_idx": attempt.problem_idx,
        "repeat": attempt.repeat,
        "reward": None,
        "verify_ms": round(verify_ms, 3),
        "error": message,
    }


def _head(seeded: Seeded, state: str, model_ms: float) -> dict[str, Any]:
    return {
        "problem_idx": seeded.attempt.problem_idx,
        "repeat": seeded.attempt.repeat,
        "state": state,
        "timestamp": _now(),
        "seed_ms": round(seeded.seed_ms, 3),
        "model_ms": round(model_ms, 3),
    }


def _now() -> str:
    """ISO 8601 in milliseconds; only the last digits are made anew, many times in a second."""
    seconds, rest = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_second(seconds)}.{rest:03}+00:00"


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
