"""Datasets and tokenizers: harnesses load them when the job has begun, and what is not there is found out here."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nemotron.endpoint import Answer, ask_hub
from nemotron.hub import Item, cache_home, is_cached, is_offline
from nemotron.preflight.finding import Finding
from nemotron.secrets import redact_url

REFUSED = (401, 403)
FOUND = (200, 301, 302, 307, 308)
"""What has moved is still found by its old name."""
DEFAULT_HUB = "https://huggingface.co"


def check_hub(plan: Mapping[str, Any], environ: Mapping[str, str], *, sees_cache: bool) -> Iterator[Finding]:
    """`sees_cache` says that the job reads the same files as this process."""
    wanted = items_of(plan)
    if sees_cache:
        for path, tasks in paths_of(plan).items():
            yield from check_path(path, tasks)
    if is_offline(environ):
        for item, tasks in wanted.items() if sees_cache else ():
            if not is_cached(item, environ):
                yield missing(item, tasks, cache_home(environ))
        return
    hub = environ.get("HF_ENDPOINT") or DEFAULT_HUB
    for item, tasks in wanted.items():
        if not (sees_cache and is_cached(item, environ)):
            yield from check_item(item, tasks, hub, environ, is_given=item.id != plan["model"]["id"])


def items_of(plan: Mapping[str, Any]) -> dict[Item, list[str]]:
    """Everything that comes from the hub, with the tasks that want it."""
    items: dict[Item, list[str]] = {}
    for task in plan["tasks"]:
        for dataset in task.get("datasets", ()):
            items.setdefault(Item.dataset(dataset), []).append(task["name"])
        if (tokenizer := _tokenizer(plan, task)) and not _is_path(tokenizer):
            items.setdefault(Item("models", tokenizer), []).append(task["name"])
    return items


def paths_of(plan: Mapping[str, Any]) -> dict[str, list[str]]:
    paths: dict[str, list[str]] = {}
    for task in plan["tasks"]:
        if (tokenizer := _tokenizer(plan, task)) and _is_path(tokenizer):
            paths.setdefault(tokenizer, []).append(task["name"])
    return paths


def _tokenizer(plan: Mapping[str, Any], task: Mapping[str, Any]) -> str | None:
    """In chats, too: harnesses load what they are told of, and the served name when they are told of none."""
    extra = task["params"].get("extra", {})
    if extra.get("tokenizer_backend") != "huggingface":
        return None
    return str(extra.get("tokenizer") or plan["model"]["id"])


def _is_path(tokenizer: str) -> bool:
    return tokenizer.startswith(("/", "."))


def check_path(path: str, tasks: list[str]) -> Iterator[Finding]:
    if not Path(path).exists():
        what = f"There is no tokenizer at {path}"
        yield Finding(what, _would_fail(tasks), "correct EVAL_TOKENIZER, or mount its folder into the job")


def missing(item: Item, tasks: list[str], cache: Path) -> Finding:
    return Finding(
        f"The {item.what} {item} is not in {cache}, and the job is to stay offline",
        _would_fail(tasks),
        "fill the cache first, name one that has it with HF_HOME, or unset HF_HUB_OFFLINE",
    )


def check_item(
    item: Item, tasks: list[str], hub: str, environ: Mapping[str, str], *, is_given: bool
) -> Iterator[Finding]:
    token = environ.get("HF_TOKEN")
    answer = ask_hub(hub, item, token)
    why = _would_fail(tasks)
    if answer.status == 404:
        yield Finding(*_not_there(item, tasks, is_given=is_given, why=why))
    elif answer.status in REFUSED or (_is_gated(answer) and not token):
        said = answer.said if answer.status in REFUSED else "it is given to those who accepted its terms"
        yield Finding(f"The hub does not show the {item.what} {str(item)!r} ({said})", why, _opened_by(item))
    elif _is_gated(answer) and ask_hub(hub, item, token, check="auth-check").status in REFUSED:
        what = f"The account of HF_TOKEN may not read the {item.what} {str(item)!r}"
        yield Finding(what, why, "accept its terms on the hub, or take the token of an account that has")
    elif answer.status not in FOUND:
        what = f"{redact_url(hub)} cannot be asked for the {item.what} {str(item)!r} ({answer.said})"
        yield Finding(what, "whether the job can load it is not known here", "see to it that its host can", "note")


def _not_there(item: Item, tasks: list[str], *, is_given: bool, why: str) -> tuple[str, str, str]:
    if item.kind == "datasets":
        action = f"correct `datasets` of {tasks[0]} in the suite, or say `datasets: []` if the harness brings it along"
        return f"The hub has no dataset {str(item)!r}", why, action
    if is_given:
        return f"The hub has no tokenizer {str(item)!r}", why, "correct EVAL_TOKENIZER, or give the path of one"
    what = f"The served name {item.id!r} is not on the hub, and no tokenizer is named"
    return what, why, "set EVAL_TOKENIZER to a hub id or a path"


def _opened_by(item: Item) -> str:
    correct = ", or correct EVAL_TOKENIZER" if item.kind == "models" else ""
    return f"accept its terms, and export HF_TOKEN (secret_vars of the profile forwards it){correct}"


def _is_gated(answer: Answer) -> bool:
    return isinstance(answer.content, dict) and bool(answer.content.get("gated"))


def _would_fail(tasks: list[str]) -> str:
    return f"{', '.join(tasks)} would fail when it loads it" if len(tasks) == 1 else f"{', '.join(tasks)} would fail"
