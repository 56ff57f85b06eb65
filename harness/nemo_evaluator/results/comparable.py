"""Whether two runs asked the same: what differs between their manifests and could have moved a score."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nemo_evaluator.results.direct_run import DirectRun

HOW_FAST = {"parallelism", "request_timeout", "max_retries"}
"""Params that decide when an answer comes, not what it is."""
BYSTANDERS = (
    "output_dir",
    "endpoint_type",
    "use_caching",
    "caching_dir",
    "reuse_cached_responses",
    "log_failed_requests",
    "track",
    "logging_",
    "use_request_logging",
    "use_response_logging",
    "use_progress_tracking",
    "progress_tracking_",
    "max_logged_",
    "max_saved_",
    "save_",
)
"""Beginnings of adapter settings that neither a question nor an answer passes through."""


@dataclass(frozen=True, slots=True)
class Difference:
    what: str
    a: Any
    b: Any

    def __str__(self) -> str:
        return f"{self.what}: {self.a!r} and {self.b!r}"


def differences(a: DirectRun, b: DirectRun) -> list[Difference]:
    """Everything but the model, its address, and how fast it was asked."""
    sides = [*_of_run(a, b), *(found for task in sorted(a.tasks.keys() & b.tasks.keys()) for found in _of(task, a, b))]
    return [difference for difference in sides if difference.a != difference.b]


def _of_run(a: DirectRun, b: DirectRun) -> Iterator[Difference]:
    yield Difference(
        "endpoint type", a.manifest["model"].get("endpoint_type"), b.manifest["model"].get("endpoint_type")
    )
    yield from _images(a.manifest["harness"], b.manifest["harness"])
    for task in sorted(a.tasks.keys() | b.tasks.keys()):
        yield Difference(f"task {task}", _state(a, task), _state(b, task))


def _state(run: DirectRun, task: str) -> str:
    return run.states.get(task, "not finished") if task in run.tasks else "not run"


def _images(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Difference]:
    """Like with like: one image has a digest as index and another as platform manifest. What no digest tells apart is
    judged by the packages inside."""
    for key in ("index_digest", "platform_digest"):
        if a.get(key) and b.get(key):
            yield Difference("image digest", _digest(a, key), _digest(b, key))
            return
    yield Difference("image", a.get("image"), b.get("image"))
    if not (a.get("image_pinned_by_digest") and b.get("image_pinned_by_digest")):
        mine, theirs = a.get("packages") or {}, b.get("packages") or {}
        for name in sorted(mine.keys() | theirs.keys()):
            yield Difference(f"package {name}", mine.get(name), theirs.get(name))


def _digest(harness: Mapping[str, Any], key: str) -> str:
    return f"{str(harness.get('image')).partition('@')[0]}@{harness[key]}"


def _of(task: str, a: DirectRun, b: DirectRun) -> Iterator[Difference]:
    yield Difference(f"{task} tokenizer", _tokenizer(a, task), _tokenizer(b, task))
    for name, settings in (("params", _params), ("adapter_config", _adapter)):
        mine, theirs = settings(a.tasks[task]), settings(b.tasks[task])
        for key in sorted(mine.keys() | theirs.keys()):
            yield Difference(f"{task} {name}.{key}", mine.get(key), theirs.get(key))


def _tokenizer(run: DirectRun, task: str) -> str | None:
    """Without one of its own, a harness takes the served name for a tokenizer."""
    extra = (run.tasks[task].get("params") or {}).get("extra") or {}
    own = extra.get("tokenizer")
    return own or (run.model if extra.get("tokenizer_backend") == "huggingface" else None)


def _params(entry: Mapping[str, Any]) -> dict[str, Any]:
    params = dict(entry.get("params") or {})
    extra = {key: value for key, value in (params.pop("extra", None) or {}).items() if key != "tokenizer"}
    flat = {**params, **{f"extra.{key}": value for key, value in extra.items()}}
    return {key: value for key, value in flat.items() if key not in HOW_FAST and value is not None}


def _adapter(entry: Mapping[str, Any]) -> dict[str, Any]:
    config = entry.get("adapter_config") or {}
    return {key: value for key, value in config.items() if value is not None and not key.startswith(BYSTANDERS)}
