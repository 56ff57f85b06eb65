"""Rows of results.jsonl and trajectories.jsonl, from the merged record of a sample. Pure."""

import hashlib
from typing import Any

from nemo_evaluator.results.failures import failure_category
from nemo_evaluator.types import ModelResponse, StepRecord

Row = dict[str, Any]


def result_row(record: Row) -> Row:
    """`reward` is null where there is no score: an error is not a wrong answer."""
    return {
        "problem_idx": record["problem_idx"],
        "repeat": record["repeat"],
        "reward": record.get("reward"),
        "state": record["state"],
        "extracted_answer": record.get("extracted_answer"),
        "expected_answer": record["expected_answer"],
        "prompt": record["prompt"],
        "model_response": record.get("response"),
        "scoring_details": record.get("scoring_details", {}),
        "metadata": record["seed_metadata"] | record.get("metadata", {}),
        "tokens": record.get("total_tokens"),
        "latency_ms": record.get("latency_ms"),
        "finish_reason": record.get("finish_reason"),
        "error": record.get("error"),
    }


def step_record(record: Row) -> StepRecord:
    details = record.get("scoring_details", {})
    seed_ms, model_ms, verify_ms = record["seed_ms"], record["model_ms"], record.get("verify_ms", 0.0)
    return StepRecord(
        problem_idx=record["problem_idx"],
        repeat=record["repeat"],
        prompt=record["prompt"],
        expected_answer=record["expected_answer"],
        model_response=_model_response(record) if "response" in record else None,
        reward=record.get("reward"),
        extracted_answer=record.get("extracted_answer"),
        scoring_method=details.get("method", ""),
        scoring_details=details,
        seed_ms=seed_ms,
        model_ms=model_ms,
        verify_ms=verify_ms,
        total_ms=round(seed_ms + model_ms + verify_ms, 3),
        model_error=record.get("error"),
        state=record["state"],
        timestamp=record["timestamp"],
        messages=record.get("messages"),
        system_prompt=record.get("system_prompt"),
        seed_metadata=record["seed_metadata"],
        failure_category=failure_category(record),
        retries=record.get("retries", 0),
        trajectory=record.get("trajectory"),
    )


def _model_response(record: Row) -> ModelResponse:
    return ModelResponse(
        content=record["response"],
        model=record["model"],
        finish_reason=record["finish_reason"],
        prompt_tokens=record["prompt_tokens"],
        completion_tokens=record["completion_tokens"],
        total_tokens=record["total_tokens"],
        reasoning_tokens=record["reasoning_tokens"],
        latency_ms=record["latency_ms"],
        reasoning_content=record["reasoning_content"],
    )


def trajectory_row(record: Row) -> Row:
    """A step as a line of trajectories.jsonl."""
    step = step_record(record)
    return {
        "step_id": f"p{step.problem_idx}_r{step.repeat}",
        "problem_idx": step.problem_idx,
        "repeat": step.repeat,
        "timestamp": step.timestamp,
        "state": step.state,
        "prompt": step.prompt,
        "messages": step.messages,
        "system_prompt": step.system_prompt,
        "expected_answer": step.expected_answer,
        "reward": step.reward,
        "extracted_answer": step.extracted_answer,
        "scoring_method": step.scoring_method,
        "scoring_details": step.scoring_details,
        "seed_metadata": step.seed_metadata,
        "timing": {
            "seed_ms": step.seed_ms,
            "model_ms": step.model_ms,
            "verify_ms": step.verify_ms,
            "total_ms": step.total_ms,
        },
        "failure_category": step.failure_category,
        "retries": step.retries,
        "model": None if step.model_response is None else _model(step.prompt, step.model_response),
        "model_error": step.model_error,
        "trajectory": step.trajectory,
    }


def _model(prompt: str, reply: ModelResponse) -> Row:
    return {
        "content": reply.content,
        "reasoning_content": reply.reasoning_content,
        "model": reply.model,
        "finish_reason": reply.finish_reason,
        "tokens": {
            "prompt": reply.prompt_tokens,
            "completion": reply.completion_tokens,
            "total": reply.total_tokens,
            "reasoning": reply.reasoning_tokens,
        },
        "latency_ms": reply.latency_ms,
        "request_hash": _hash(prompt),
        "response_hash": _hash(reply.content),
    }


def _hash(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
