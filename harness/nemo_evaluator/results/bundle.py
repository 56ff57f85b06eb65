"""The bundle of a run: scores with their uncertainty, counts of every state, and where each number comes from. Pure."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from nemo_evaluator.metrics.breakdown import MOST_GROUPS, Label, breakdowns
from nemo_evaluator.metrics.summary import summarise
from nemo_evaluator.results.failures import FailureCounts
from nemo_evaluator.results.runtime import RuntimeCounts

SCHEMA_VERSION = 1
SHOWN_ERROR = 300
LONGEST_LABEL = 100
"""Characters; a longer string of scoring_details is text, not a label."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a run knows of itself, beside its samples."""

    run_id: str
    benchmark: str
    config: Mapping[str, Any]
    provenance: Mapping[str, Any]
    states: Counter[str]
    """Of all planned samples, those that were not asked included."""
    n_repeats: int
    max_error_rate: float
    is_interrupted: bool
    failure: str | None
    """Why the run could not go on."""
    elapsed_seconds: float
    endpoint: dict[str, Any] = field(default_factory=dict)


def make_bundle(facts: RunFacts, records: Iterable[dict[str, Any]], sdk_version: str) -> dict[str, Any]:
    """One pass over the records. Scores are over samples that have one; `mean_reward_over_all` counts errors as 0."""
    columns, failures, runtime = Columns(), FailureCounts(), RuntimeCounts()
    for record in records:
        columns.add(record)
        failures.add(record)
        runtime.add(record)
    status, reason = _status(facts, failures.first_error)
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": facts.run_id,
        "status": status,
        "reason": reason,
        "config_hash": facts.provenance["fingerprint_hash"],
        "sdk_version": sdk_version,
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": dict(facts.config),
        "benchmark": {
            "name": facts.benchmark,
            "samples": len(set(columns.problem)),
            "repeats": facts.n_repeats,
            "states": dict(facts.states),
            "scores": columns.scores(facts.n_repeats)
            | {
                "runtime": runtime.report(facts.elapsed_seconds, facts.endpoint),
                "failures": failures.report(),
                "breakdowns": columns.breakdowns(),
            },
            "categories": columns.categories(),
        },
        "n_results": len(columns.problem),
        "provenance": dict(facts.provenance),
    }


def _status(facts: RunFacts, first_error: str | None) -> tuple[str, str | None]:
    if facts.failure:
        return "failed", facts.failure
    left = facts.states["not_asked"] + facts.states["answered"]
    if facts.is_interrupted and left:
        return "interrupted", f"stopped with {left} of {facts.states.total()} samples open: go on with --resume"
    errors = Counter({state: n for state, n in facts.states.items() if state.startswith("error:")})
    if errors.total() > facts.max_error_rate * facts.states.total():
        kinds = ", ".join(f"{state.removeprefix('error:')} {n}" for state, n in errors.most_common())
        return "failed", (
            f"{errors.total()} of {facts.states.total()} samples ended in errors ({kinds}), more than "
            f"--max-error-rate {facts.max_error_rate:g} allows. The first: {_short(first_error)}. "
            "Mend the cause, then ask just those again with --resume"
        )
    return "completed", None


def _short(error: str | None) -> str:
    text = " ".join((error or "it says nothing").split()).rstrip(".")
    return text if len(text) <= SHOWN_ERROR else text[:SHOWN_ERROR] + "..."


class Columns:
    """The few values of each sample that scores are made of."""

    def __init__(self) -> None:
        self.problem, self.repeat, self.reward = array("q"), array("q"), array("d")
        self._labels: dict[str, list[Label]] = {}
        self._values: dict[str, set[Label]] = {}
        self._category: list[Label] = []

    def add(self, record: dict[str, Any]) -> None:
        reward = record.get("reward")
        self._category.append(_label((record["seed_metadata"] | record.get("metadata", {})).get("category")))
        for key, value in record.get("scoring_details", {}).items():
            self._add_label(key, _label(value))
        self.problem.append(record["problem_idx"])
        self.repeat.append(record["repeat"])
        self.reward.append(math.nan if reward is None else reward)

    def _add_label(self, key: str, label: Label) -> None:
        """Columns are as long as the samples seen so far; one with too many values is an identifier and is dropped."""
        if label is None or len(self._values.setdefault(key, set())) > MOST_GROUPS:
            return
        self._values[key].add(label)
        if len(self._values[key]) > MOST_GROUPS:
            self._labels.pop(key, None)
            return
        column = self._labels.setdefault(key, [])
        column.extend([None] * (len(self.problem) - len(column)))
        column.append(label)

    def scores(self, n_repeats: int) -> dict[str, Any]:
        return summarise(self.problem, self.repeat, self.reward, n_repeats=n_repeats, clusters=self._clusters())

    def breakdowns(self) -> dict[str, Any]:
        padded = {key: column + [None] * (len(self.problem) - len(column)) for key, column in self._labels.items()}
        return breakdowns(padded, self.problem, self.reward)

    def categories(self) -> dict[str, Any]:
        rows = breakdowns({"category": self._category}, self.problem, self.reward).get("category", [])
        return {str(row["group"]): {key: row[key] for key in row if key != "group"} for row in rows}

    def _clusters(self) -> list[int] | None:
        """Categories as numbers; questions of one subject are relatives."""
        if not any(category is not None for category in self._category):
            return None
        number: dict[Label, int] = {}
        return [number.setdefault(category, len(number)) for category in self._category]


def _label(value: Any) -> Label:
    if isinstance(value, bool):
        return value
    return value if isinstance(value, str) and len(value) < LONGEST_LABEL else None
