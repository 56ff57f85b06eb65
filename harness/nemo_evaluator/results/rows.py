"""Rows of results.jsonl and trajectories.jsonl, from the merged record of a sample. Pure."""

import hashlib
from typing import Any

from nemo_evaluator.results.failures import failure_category

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


def trajectory_row(record: Row) -> Row:
    """The StepRecord of a sample."""
    details = record.get("scoring_details", {})
    return {
        "step_id": f"p{record['problem_idx']}_r{record['repeat']}",
        "problem_idx": record["problem_idx"],
        "repeat": record["repeat"],
        "timestamp": record["timestamp"],
        "state": record["state"],
        "prompt": record["prompt"],
        "messages": record.get("messages"),
        "system_prompt": record.get("system_prompt"),
        "expected_answer": record["expected_answer"],
        "reward": record.get("reward"),
        "extracted_answer": record.get("extracted_answer"),
        "scoring_method": details.get("method", ""),
        "scoring_details": details,
        "seed_metadata": record["seed_metadata"],
        "timing": _timing(record),
        "failure_category": failure_category(record),
        "retries": record.get("retries", 0),
        "model": _model(record) if "response" in record else None,
        "model_error": record.get("error"),
        "trajectory": record.get("trajectory"),
    }


def _timing(record: Row) -> Row:
    stages = {"seed_ms": record["seed_ms"], "model_ms": record["model_ms"], "verify_ms": record.get("verify_ms", 0.0)}
    return stages | {"total_ms": round(sum(stages.values()), 3)}


def _model(record: Row) -> Row:
    return {
        "content": record["response"],
        "reasoning_content": record["reasoning_content"],
        "model": record["model"],
        "finish_reason": record["finish_reason"],
        "tokens": {
            "prompt": record["prompt_tokens"],
            "completion": record["completion_tokens"],
            "total": record["total_tokens"],
            "reasoning": record["reasoning_tokens"],
        },
        "latency_ms": record["latency_ms"],
        "request_hash": _hash(record["prompt"]),
        "response_hash": _hash(record["response"]),
    }


def _hash(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
