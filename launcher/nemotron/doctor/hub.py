"""Datasets and tokenizers: what a place without the internet cannot load must be in its cache."""

from collections.abc import Iterator, Mapping
from typing import Any

from nemotron.doctor.facts import Facts
from nemotron.doctor.finding import Finding, fail, ok, warn
from nemotron.preflight.hub import DEFAULT_HUB, items_of
from nemotron.secrets import redact_url

SHOWN = 3


def hub_of(environ: Mapping[str, str]) -> str:
    return environ.get("HF_ENDPOINT") or DEFAULT_HUB


def hub_items(plan: Mapping[str, Any]) -> dict[str, str]:
    """What the tasks load: its folder in a cache -> its name."""
    return {"--".join([item.kind, *item.id.split("/")]): f"{item.what} {item}" for item in items_of(plan)}


def hub_findings(hub: str, items: Mapping[str, str], facts: Facts, *, is_offline: bool) -> Iterator[Finding]:
    missing = [name for folder, name in items.items() if not facts.cached[folder]]
    if is_offline and missing:
        shown = ", ".join(missing[:SHOWN]) + (f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else "")
        action = "fill the cache from a login node (`hf download`), and name it with HF_HOME in env_vars"
        yield fail(f"{facts.host} is to stay offline, and its cache lacks the {shown}", action, "hub-cache")
    elif is_offline:
        yield ok(f"{facts.host} stays offline, and its cache has what the tasks load")
    elif facts.urls[hub].stage != "answer" and missing:
        what = f"{facts.host} cannot reach {redact_url(hub)} ({facts.urls[hub].said})"
        action = "fill a shared cache, and set HF_HOME and HF_HUB_OFFLINE=1 in env_vars"
        yield warn(what, action, "hub")
    elif facts.urls[hub].stage == "answer":
        yield ok(f"{facts.host} reaches {redact_url(hub)}")
    else:
        yield ok(f"{facts.host} needs nothing from {redact_url(hub)}, which it cannot reach")
