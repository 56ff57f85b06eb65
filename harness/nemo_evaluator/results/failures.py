"""Why samples brought nothing: requests that failed, answers that were cut, empty, refused, or held no answer."""

import re
from collections import Counter
from typing import Any

EXEMPLARS = 3
_REFUSAL = re.compile(
    r"\b(i(?: a|')m sorry|i apologi[sz]e|i (?:can(?:no|')t|am unable to|won't|will not)|as an ai)\b", re.IGNORECASE
)
REFUSAL_WITHIN = 200
"""Characters: a refusal opens an answer, and reasoning may say anything later."""


def failure_category(record: dict[str, Any]) -> str | None:
    """error:<kind>, truncated, empty, refusal or format_error; None for a sample that was answered, right or wrong."""
    state: str = record["state"]
    if state.startswith("error:"):
        return state
    if record["reward"] > 0:
        return None
    if state != "scored":
        return state
    if record["extracted_answer"] is not None:
        return None
    return "refusal" if _REFUSAL.search(record["response"][:REFUSAL_WITHIN]) else "format_error"


class FailureCounts:
    """Counts by category with up to three exemplars each, fed one record at a time."""

    def __init__(self) -> None:
        self._total = 0
        self.first_error: str | None = None
        """What the first request or scorer that failed had to say."""
        self._counts: Counter[str] = Counter()
        self._exemplars: dict[str, list[dict[str, Any]]] = {}

    def add(self, record: dict[str, Any]) -> None:
        self._total += 1
        category = failure_category(record)
        if category is None:
            return
        self._counts[category] += 1
        if self.first_error is None:
            self.first_error = record.get("error")
        exemplars = self._exemplars.setdefault(category, [])
        if len(exemplars) < EXEMPLARS:
            exemplars.append(_exemplar(record))

    def report(self) -> dict[str, Any]:
        """The content of failure_analysis.json."""
        failures = self._counts.total()
        return {
            "total_steps": self._total,
            "total_failures": failures,
            "failure_rate": _share(failures, self._total),
            "categories": {
                category: {
                    "count": count,
                    "percentage": round(100 * count / self._total, 2),
                    "exemplars": self._exemplars[category],
                }
                for category, count in self._counts.most_common()
            },
        }


def _exemplar(record: dict[str, Any]) -> dict[str, Any]:
    return {
        "problem_idx": record["problem_idx"],
        "repeat": record["repeat"],
        "error": record.get("error"),
        "prompt": record["prompt"][:500],
        "response": record.get("response", "")[:500],
        "expected_answer": record["expected_answer"],
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0
