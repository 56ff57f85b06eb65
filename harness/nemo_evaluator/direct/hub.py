"""Datasets and tokenizers that the tasks will load: in the cache, or on a hub that can be asked from here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping
from urllib.parse import quote

from nemo_evaluator.direct.masking import redact_url
from nemo_evaluator.direct.plan import Plan, Task
from nemo_evaluator.direct.probe import Answer, Endpoint

HUB = "https://huggingface.co"
SECONDS = 5.0
TRUE = ("1", "true", "yes", "on")
OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE")
FOUND = (200, 301, 302, 307, 308)
"""What has moved is still found by its old name."""


@dataclass(frozen=True)
class Item:
    kind: str
    """datasets or models, as the hub calls them."""
    id: str
    revision: str | None = None

    @property
    def shown(self) -> str:
        what = "dataset" if self.kind == "datasets" else "tokenizer"
        return f"{what} {self.id}" + (f"@{self.revision}" if self.revision else "")

    @property
    def names(self) -> list[str]:
        """Harnesses also ask for a dataset that has moved to an organisation by its old name of one word."""
        return [self.id, self.id.rpartition("/")[2]] if self.kind == "datasets" else [self.id]


def check_hub(plan: Plan, environ: Mapping[str, str]) -> list[str]:
    """A line for each that no task could load; `environ` is the harness's."""
    findings = []
    hub_is_dead = False
    for item, tasks in items_of(plan).items():
        flaw = None
        if item.id.startswith(("/", ".")):
            flaw = None if Path(item.id).exists() else "no such path in the job; mount it, or correct EVAL_TOKENIZER"
        elif not is_cached(item, environ):
            answer = None if hub_is_dead or is_offline(environ) else ask(item, environ)
            hub_is_dead = hub_is_dead or (answer is not None and answer.status is None)
            flaw = flaw_of(item, answer, environ)
        if flaw:
            findings.append(f"The {item.shown} cannot be loaded, {', '.join(tasks)} would fail: {flaw}.")
    return findings


def items_of(plan: Plan) -> dict[Item, list[str]]:
    items: dict[Item, list[str]] = {}
    for task in plan.tasks:
        for text in task.datasets:
            identifier, _, revision = text.partition("@")
            items.setdefault(Item("datasets", identifier, revision or None), []).append(task.name)
        tokenizer = _tokenizer(plan, task)
        if tokenizer:
            items.setdefault(Item("models", tokenizer), []).append(task.name)
    return items


def _tokenizer(plan: Plan, task: Task) -> str | None:
    """In chats, too: harnesses load what they are told of, and the served name when they are told of none."""
    extra = task.params.get("extra") or {}
    if extra.get("tokenizer_backend") != "huggingface":
        return None
    return str(extra.get("tokenizer") or plan.model.id)


def ask(item: Item, environ: Mapping[str, str]) -> Answer:
    revision = f"/revision/{quote(item.revision, safe='')}" if item.revision else ""
    url = f"{_hub(environ)}/api/{item.kind}/{quote(item.id)}{revision}"
    return Endpoint(url, environ.get("HF_TOKEN"), SECONDS).get()


def flaw_of(item: Item, answer: Answer | None, environ: Mapping[str, str]) -> str | None:
    """None when it can be loaded, as far as the hub tells."""
    where = f"{cache_home(environ)} does not hold it"
    if answer is None and is_offline(environ):
        return f"{where} and HF_HUB_OFFLINE is set; fill the cache, name another with HF_HOME, or unset it"
    if answer is None or answer.status is None:
        said = f" ({answer.text})" if answer else ""
        return f"{where} and {redact_url(_hub(environ))} cannot be reached{said}; fill the cache, or set HF_ENDPOINT"
    if answer.status == 404:
        return f"{redact_url(_hub(environ))} has none of that name{_correction(item)}"
    if answer.status in (401, 403) or (answer.document.get("gated") and not environ.get("HF_TOKEN")):
        return "it is given only to those who accepted its terms; do so, and pass HF_TOKEN to the job"
    if answer.status not in FOUND:
        return f"{redact_url(_hub(environ))} answers HTTP {answer.status}; try again, or set HF_ENDPOINT to a mirror"
    return None


def _correction(item: Item) -> str:
    if item.kind == "models":
        return "; set EVAL_TOKENIZER to a hub id or a path"
    return "; correct `datasets` of the task in the suite"


def is_offline(environ: Mapping[str, str]) -> bool:
    """As the hub's own library reads its variables."""
    return any(environ.get(name, "").strip().lower() in TRUE for name in OFFLINE)


def is_cached(item: Item, environ: Mapping[str, str]) -> bool:
    return any(_has_snapshot(item, name, environ) or _is_prepared(item, name, environ) for name in item.names)


def cache_home(environ: Mapping[str, str]) -> Path:
    """HF_HOME, as the library finds it."""
    own = environ.get("HF_HOME")
    if own:
        return Path(own).expanduser()
    return Path(environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", "/"), ".cache")) / "huggingface"


def _hub(environ: Mapping[str, str]) -> str:
    return (environ.get("HF_ENDPOINT") or HUB).rstrip("/")


def _has_snapshot(item: Item, name: str, environ: Mapping[str, str]) -> bool:
    """The revision's commit is written in refs; a commit names itself."""
    hub = Path(environ.get("HF_HUB_CACHE") or cache_home(environ) / "hub")
    folder = hub / "--".join([item.kind, *name.split("/")])
    reference = folder / "refs" / (item.revision or "main")
    commit = reference.read_text().strip() if reference.is_file() else item.revision
    snapshot = folder / "snapshots" / (commit or "none")
    return snapshot.is_dir() and any(snapshot.iterdir())


def _is_prepared(item: Item, name: str, environ: Mapping[str, str]) -> bool:
    """As `datasets` keeps what it has read: without a revision any commit will do, as it does for the library."""
    if item.kind != "datasets":
        return False
    cache = Path(environ.get("HF_DATASETS_CACHE") or cache_home(environ) / "datasets")
    wanted = re.sub(r"[_/]", "", name).lower()
    folders = [path for path in cache.glob("*") if path.name.replace("_", "").lower() == wanted]
    return any(any(folder.glob(f"*/*/{item.revision or '*'}/dataset_info.json")) for folder in folders)
