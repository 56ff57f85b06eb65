"""Tokens, latencies and rates of a run."""

from array import array
from collections import Counter
from typing import Any

import numpy as np

TOKEN_COUNTS = ("total_tokens", "prompt_tokens", "completion_tokens", "reasoning_tokens")


class RuntimeCounts:
    """Fed one record at a time; keeps eight bytes a sample."""

    def __init__(self) -> None:
        self._steps = 0
        self._errors = 0
        self._retries = 0
        self._tokens: dict[str, int | None] = dict.fromkeys(TOKEN_COUNTS)
        self._finish_reasons: Counter[str] = Counter()
        self._latencies = array("d")

    def add(self, record: dict[str, Any]) -> None:
        self._steps += 1
        if "response" not in record:
            self._errors += 1
            return
        self._retries += record["retries"]
        self._finish_reasons[record["finish_reason"]] += 1
        self._latencies.append(record["latency_ms"])
        for name in TOKEN_COUNTS:
            if (count := record[name]) is not None:
                self._tokens[name] = (self._tokens[name] or 0) + count

    def report(self, elapsed_seconds: float, endpoint: dict[str, Any]) -> dict[str, Any]:
        """The content of runtime_stats.json; a token count no reply reported is null, not 0."""
        return {
            "total_steps": self._steps,
            **{name if name == "total_tokens" else f"total_{name}": self._tokens[name] for name in TOKEN_COUNTS},
            "elapsed_seconds": round(elapsed_seconds, 3),
            "latency_percentiles_ms": _percentiles(self._latencies),
            "tokens_per_second": _rate(self._tokens["completion_tokens"] or 0, elapsed_seconds),
            "steps_per_second": _rate(self._steps, elapsed_seconds),
            "model_errors": self._errors,
            "total_retries": self._retries,
            "finish_reason_counts": dict(self._finish_reasons),
            "endpoint": endpoint,
        }


def _percentiles(latencies: "array[float]") -> dict[str, float | None]:
    if not latencies:
        return {"p50": None, "p90": None, "p99": None}
    p50, p90, p99 = np.percentile(np.frombuffer(latencies), [50, 90, 99])
    return {"p50": round(float(p50), 1), "p90": round(float(p90), 1), "p99": round(float(p99), 1)}


def _rate(count: int, seconds: float) -> float:
    return round(count / seconds, 2) if seconds > 0 else 0.0
