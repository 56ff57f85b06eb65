"""`adapter_config.interceptors`: a list of interceptors, said in the flat keys that the proxy has.

The order is the proxy's own, whatever the list's: what changes requests stands before what logs and keeps them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nemo_evaluator.config.keypath import did_you_mean
from nemo_evaluator.errors import UsageError


@dataclass(frozen=True, slots=True)
class Link:
    """How one interceptor is switched on, and what its settings are called when they are flat."""

    switch: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)


LINKS = {
    "system_message": Link(
        "use_system_prompt", {"system_message": "custom_system_prompt", "strategy": "system_prompt_strategy"}
    ),
    "payload_modifier": Link(
        None,
        {
            key: key
            for key in (
                "params_to_add",
                "params_to_remove",
                "params_to_rename",
                "headers_to_add",
                "headers_to_remove",
                "headers_to_rename",
            )
        },
    ),
    "request_logging": Link("use_request_logging", {"max_requests": "max_logged_requests", "output_dir": "output_dir"}),
    "caching": Link(
        "use_caching",
        {
            "cache_dir": "caching_dir",
            "reuse_cached_responses": "reuse_cached_responses",
            "save_requests": "save_requests",
            "save_responses": "save_responses",
            "max_saved_requests": "max_saved_requests",
            "max_saved_responses": "max_saved_responses",
        },
    ),
    "endpoint": Link(),
    "response_stats": Link(
        "tracking_requests_stats", {"logging_aggregated_stats_interval": "logging_aggregated_stats_interval"}
    ),
    "response_logging": Link(
        "use_response_logging", {"max_responses": "max_logged_responses", "output_dir": "output_dir"}
    ),
    "reasoning": Link(
        "process_reasoning_traces",
        {
            "start_reasoning_token": "start_reasoning_token",
            "end_reasoning_token": "end_reasoning_token",
            "include_if_not_finished": "include_if_reasoning_not_finished",
            "enable_reasoning_tracking": "track_reasoning",
        },
    ),
    "progress_tracking": Link(
        "use_progress_tracking",
        {
            "progress_tracking_url": "progress_tracking_url",
            "progress_tracking_interval": "progress_tracking_interval",
            "output_dir": "output_dir",
        },
    ),
    "raise_client_errors": Link("use_raise_client_errors"),
}
OFF_UNLESS_LISTED = {"use_caching": False, "tracking_requests_stats": False}
BESIDE = frozenset({"interceptors", "mode", "discovery", "post_eval_hooks", "endpoint_type", "log_failed_requests"})
"""What may stand beside the list, or is refused for a reason of its own."""


def flattened(values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` without the list. Raises UsageError, in one line, for what the proxy does not do."""
    if mixed := sorted(values.keys() - BESIDE):
        raise UsageError(
            f"adapter_config has interceptors and {', '.join(mixed)}: a list of interceptors is all there is; leave "
            "the flat keys out, or the list."
        )
    beside = {key: value for key, value in values.items() if key != "interceptors"}
    flat: dict[str, Any] = {**OFF_UNLESS_LISTED, **beside}
    for name, config in _entries(values["interceptors"]):
        for key, value in _settings(name, config):
            if flat.get(key, value) != value and key not in OFF_UNLESS_LISTED:
                raise UsageError(f"adapter_config.interceptors: {name} gives another {key} than the others: give one.")
            flat[key] = value
    return flat


def _entries(listed: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A plain word stands for an interceptor without settings."""
    if not isinstance(listed, list):
        raise UsageError(f"adapter_config.interceptors is {listed!r}: give a list of names, or of {{name, config}}.")
    for entry in listed:
        entry = {"name": entry} if isinstance(entry, str) else entry
        known = isinstance(entry, Mapping) and entry.keys() <= {"name", "enabled", "config"}
        if not known or not isinstance(entry.get("config") or {}, Mapping):
            raise UsageError(f"adapter_config.interceptors holds {entry!r}: give name, config and maybe enabled.")
        if entry.get("enabled", True):
            yield str(entry.get("name")), entry.get("config") or {}


def _settings(name: str, config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if (link := LINKS.get(name)) is None:
        near = did_you_mean(name, LINKS)
        raise UsageError(f"adapter_config.interceptors: there is no {name!r}{near}; there are {', '.join(LINKS)}.")
    if link.switch is not None:
        yield link.switch, True
    for key, value in config.items():
        if key not in link.keys:
            has = f"it has {', '.join(link.keys)}" if link.keys else "it has none"
            raise UsageError(f"adapter_config.interceptors: {name} has no setting {key!r} here; {has}. Leave it out.")
        if value is not None:
            yield link.keys[key], value
