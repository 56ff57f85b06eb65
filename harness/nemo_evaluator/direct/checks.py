"""Every reason to refuse that can be seen without touching anything. Nothing here creates or deletes."""

from __future__ import annotations

import os
import shutil
import unicodedata
from pathlib import Path
from typing import Any, Mapping
from urllib.parse import urlsplit

from nemo_evaluator.direct.errors import Refused
from nemo_evaluator.direct.plan import ENDPOINT_TYPES, PARAMS, Plan, Task

OWN_FILES = {
    "run_manifest.json",
    "summary.json",
    "failures.txt",
    "progress.json",
    "run_manifest.dry-run.json",
    "summary.dry-run.json",
    ".nemotron-eval.lock",
}
BESIDE_A_CHAIN = {"interceptors", "mode", "discovery", "post_eval_hooks", "endpoint_type", "log_failed_requests"}
"""What an adapter takes together with a list of interceptors; switches such as use_caching it then refuses."""
FREE_TO_CHANGE = {"parallelism", "request_timeout", "max_retries"}
"""Between the parts of one run: they say how fast, not what."""


def check_plan(plan: Plan, url: str) -> None:
    """What the plan says by itself."""
    if plan.mode != "direct":
        raise Refused(f"plan.mode is {plan.mode!r}: this runner runs 'direct' only.")
    if not plan.output_dir.is_absolute():
        raise Refused(f"output_dir {str(plan.output_dir)!r} is relative: set EVAL_RESULTS_DIR to an absolute path.")
    if plan.overwrite and plan.resume:
        raise Refused("overwrite=true and resume=true contradict each other: choose one.")
    if not plan.tasks:
        raise Refused("The plan has no task: name one with -t TASK.")
    _check_model(plan, url)
    for task in plan.tasks:
        _check_name(task.name)
        _check_params(task)
        _check_adapter(task)
    _check_distinct([task.name for task in plan.tasks])


def _check_model(plan: Plan, url: str) -> None:
    kind = plan.model.endpoint_type
    if not plan.model.id.strip():
        raise Refused("No model id: set EVAL_MODEL_HANDLE to the server's --served-model-name.")
    if kind not in ENDPOINT_TYPES:
        raise Refused(f"Endpoint type {kind!r} is unknown: set EVAL_ENDPOINT_TYPE to completions or chat.")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Refused("The endpoint URL is not an http(s) URL with a host: set EVAL_ENDPOINT_URL to the full URL.")
    path = parts.path.rstrip("/")
    actual = "chat" if path.endswith("/chat/completions") else "completions" if path.endswith("/completions") else None
    if actual is None:
        raise Refused(
            f"The endpoint URL's path {parts.path!r} is neither …/completions nor …/chat/completions: "
            "set EVAL_ENDPOINT_URL to the full URL."
        )
    if actual != kind:
        raise Refused(
            f"The endpoint URL's path {parts.path!r} is one of type {actual}, the endpoint type is {kind}: "
            f"set EVAL_ENDPOINT_TYPE={actual}, or change the URL."
        )


def _check_name(name: str) -> None:
    if name.strip() != name or name in ("", ".", "..") or name.startswith("-"):
        raise Refused(f"Task name {name!r} cannot be the name of a folder: use a name that `nemo-evaluator ls` prints.")
    if "/" in name or "\\" in name or not name.isprintable():
        raise Refused(f"Task name {name!r} holds a separator: use a name that `nemo-evaluator ls` prints.")
    if name in OWN_FILES:
        raise Refused(f"Task name {name!r} is the name of a file of the run: rename the task.")


def _check_params(task: Task) -> None:
    unknown = sorted(set(task.params) - set(PARAMS))
    if unknown:
        raise Refused(
            f"Task {task.name}: unknown params {', '.join(unknown)}. Known are {', '.join(PARAMS)}; "
            "arguments of one harness go under params.extra."
        )
    if not isinstance(task.params.get("extra", {}), dict):
        raise Refused(f"Task {task.name}: params.extra is {task.params['extra']!r}, a mapping is needed.")


def _check_adapter(task: Task) -> None:
    given = {key for key, value in task.adapter_config.items() if value is not None}
    mixed = sorted(given - BESIDE_A_CHAIN)
    if mixed and task.adapter_config.get("interceptors"):
        raise Refused(
            f"Task {task.name}: adapter_config holds interceptors and {', '.join(mixed)}; the adapter takes either a "
            "chain or switches: set these to null and configure the interceptors instead."
        )


def _check_distinct(names: list[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        folder = unicodedata.normalize("NFC", name).casefold()
        if folder in seen:
            raise Refused(f"Tasks {seen[folder]!r} and {name!r} resolve to one folder: keep one of them.")
        seen[folder] = name


def find_executable(environ: Mapping[str, str]) -> Path:
    found = shutil.which("nemo-evaluator", path=environ.get("PATH"))
    if found is None:
        raise Refused(
            "nemo-evaluator is not on PATH in the job: choose a harness image with EVAL_HARNESS_IMAGE, "
            "or install a harness where the job runs."
        )
    return Path(found).absolute()


def check_folders(plan: Plan, may_exist: bool) -> None:
    if plan.output_dir.exists() and not plan.output_dir.is_dir():
        raise Refused(f"{plan.output_dir} is not a folder: choose a new EVAL_RESULTS_DIR.")
    for task in plan.tasks:
        _check_folder(plan.output_dir, plan.folder(task), may_exist)


def _check_folder(root: Path, folder: Path, may_exist: bool) -> None:
    if folder.is_symlink() or Path(os.path.realpath(folder)).parent != Path(os.path.realpath(root)):
        raise Refused(
            f"{folder} is a symbolic link or leads out of {root}: remove it, or choose a new EVAL_RESULTS_DIR."
        )
    if folder.exists() and not folder.is_dir():
        raise Refused(f"{folder} is in the way and not a folder: move it, or choose a new EVAL_RESULTS_DIR.")
    if not may_exist and folder.is_dir() and any(folder.iterdir()):
        raise Refused(
            f"{folder} already contains results: choose a new EVAL_RESULTS_DIR, continue them with resume=true, "
            "or replace them with overwrite=true."
        )


def check_same_settings(plan: Plan, manifest: dict[str, Any]) -> None:
    """A run goes on only as what it was: answers to other settings do not belong in one number."""
    if not manifest:
        return
    earlier, tasks = manifest.get("model", {}), manifest.get("tasks", {})
    pairs = [
        ("model id", earlier.get("id"), plan.model.id),
        ("endpoint type", earlier.get("endpoint_type"), plan.model.endpoint_type),
        ("image", manifest.get("harness", {}).get("image"), plan.harness.image),
    ]
    for task in plan.tasks:
        if task.name in tasks:
            before, now = _fixed(tasks[task.name].get("params", {})), _fixed(task.params)
            keys = sorted(before.keys() | now.keys())
            pairs += [(f"{task.name} {key}", before.get(key), now.get(key)) for key in keys]
    changed = [f"{what}: {before!r} before, {now!r} now" for what, before, now in pairs if before != now]
    if changed:
        raise Refused(
            f"{plan.output_dir} holds results of other settings ({'; '.join(changed)}): go back to those, "
            "choose a new EVAL_RESULTS_DIR, or replace them with overwrite=true."
        )


def _fixed(params: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in params.items() if key not in FREE_TO_CHANGE and value not in (None, {})}
