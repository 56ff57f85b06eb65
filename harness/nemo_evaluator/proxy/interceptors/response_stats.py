"""What the replies of a task were like, in numbers that do not grow with them."""

import logging
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from nemo_evaluator.proxy.exchange import Ask, Reply, Request

logger = logging.getLogger(__name__)

TOKENS = ("prompt_tokens", "total_tokens", "completion_tokens")


class ResponseStats:
    def __init__(self, log_interval: int) -> None:
        self._log_interval = log_interval
        self._sums: Counter[str] = Counter()
        self._maxima: dict[str, float] = {}
        self._counts: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._finish_reasons: Counter[str] = Counter()
        self._first: datetime | None = None
        self._last: datetime | None = None

    async def __call__(self, request: Request, ask: Ask) -> Reply:
        self._first = self._first or datetime.now(UTC)
        reply = await ask(request)
        self._last = datetime.now(UTC)
        self._add(reply)
        if self._counts["count"] % self._log_interval == 0:
            logger.info("%d replies: %s", self._counts["count"], dict(self._statuses))
        return reply

    async def close(self) -> None:
        """Nothing is held."""

    def report(self) -> dict[str, Any]:
        answered = max(1, self._counts["answered"])
        asked = max(1, self._counts["successful_count"] - self._counts["cached_count"])
        return {
            "count": self._counts["count"],
            "successful_count": self._counts["successful_count"],
            "cached_count": self._counts["cached_count"],
            "retries_count": self._counts["retries"],
            **{f"avg_{name}": round(self._sums[name] / answered, 2) for name in TOKENS},
            "avg_latency_ms": round(self._sums["latency_ms"] / asked, 2),
            **{f"max_{name}": self._maxima.get(name, 0) for name in TOKENS},
            "max_latency_ms": round(self._maxima.get("latency_ms", 0.0), 2),
            "tool_calls_count": self._counts["tool_calls"],
            "finish_reason": dict(self._finish_reasons),
            "status_codes": dict(self._statuses),
            "inference_time": self.seconds,
            "first_request_time": self._first and self._first.isoformat(),
            "last_request_time": self._last and self._last.isoformat(),
        }

    @property
    def seconds(self) -> float:
        """From the first request to the last reply."""
        return (self._last - self._first).total_seconds() if self._first and self._last else 0.0

    def _add(self, reply: Reply) -> None:
        self._counts["count"] += 1
        self._counts["retries"] += reply.attempts - 1
        self._statuses[str(reply.status)] += 1
        if reply.status != 200:
            return
        self._counts["successful_count"] += 1
        if reply.is_cached:
            self._counts["cached_count"] += 1
        else:
            self._note("latency_ms", reply.seconds * 1000)
        if reply.chunks is None and (data := reply.json()) is not None:
            self._read(data)

    def _read(self, data: dict[str, Any]) -> None:
        self._counts["answered"] += 1
        usage = data.get("usage") or {}
        for name in TOKENS:
            if isinstance(value := usage.get(name), int):
                self._note(name, value)
        for choice in data.get("choices") or ():
            if isinstance(choice, dict):
                self._finish_reasons[str(choice.get("finish_reason"))] += 1
                self._counts["tool_calls"] += len((choice.get("message") or {}).get("tool_calls") or ())

    def _note(self, name: str, value: float) -> None:
        self._sums[name] += value  # type: ignore[assignment]
        self._maxima[name] = max(self._maxima.get(name, 0), value)
