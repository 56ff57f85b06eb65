"""A resolved suite to the content of plan.json. Pure: the environment, the time and the code are parameters."""

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from nemotron.errors import UsageError
from nemotron.hub import REPOSITORY, datasets_of, is_offline
from nemotron.secrets import fits_a_header, is_secret, is_variable_name, redact_url
from nemotron.suite import Suite, TaskConfig

SCHEMA_VERSION = 1
URL_VARIABLE = "EVAL_ENDPOINT_URL"
UNSPEAKABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
ENDPOINT_TYPES = ("completions", "chat")
SUBSETS = {
    "mmlu_prox_completions": "mmlu_prox_en",
    "mmlu_prox_chat": "mmlu_prox_en",
    "global_mmlu": "global_mmlu_en",
    "global_mmlu_full": "global_mmlu_full_en",
}
"""Tasks that are a family of subsets, with the name of one of them."""
GATED = {"gpqa": "HF_TOKEN", "hle": "HF_TOKEN"}
"""First words of tasks whose datasets are only given to accounts that accepted their terms -> what opens them."""

BESIDE_A_CHAIN = {"interceptors", "mode", "discovery", "post_eval_hooks", "endpoint_type", "log_failed_requests"}
"""What an adapter takes together with a list of interceptors."""
PLAIN_URL = re.compile(r"https?://[^@?#]+")
"""Any other URL may hold credentials, and goes to the job as a secret."""
_PINNED = re.compile(r"@sha256:[0-9a-f]{64}$")


@dataclass(frozen=True, slots=True)
class Code:
    nemotron_version: str
    git_sha: str | None = None
    git_dirty: bool | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """What a plan needs to know of where the job will run."""

    environ: Mapping[str, str] = field(repr=False)
    """Of the submitting process, overlaid by the profile's env_vars and the suite's."""
    folder: Path
    """That relative paths begin at."""
    is_remote: bool = False
    runs_images: bool = False
    env_vars: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables for the job, of profile and suite; those that are secret go by name."""
    forwarded_secrets: tuple[str, ...] = ()
    platform_secrets: tuple[str, ...] = ()
    """Names whose values only the platform has."""

    def has(self, name: str) -> bool:
        return bool(self.environ.get(name)) or name in self.platform_secrets


@dataclass(frozen=True, slots=True)
class Planned:
    plan: dict[str, Any]
    revealed: Mapping[str, str] = field(repr=False)
    """Secrets that the suite spelled out instead of naming them; the job gets them under these names."""


def build_plan(suite: Suite, place: Place, *, code: Code, created: str) -> Planned:
    """Raises UsageError for everything that can be refused without asking anyone."""
    model, revealed = _model(suite, place)
    tasks = list(_tasks(suite))
    plan = {
        "schema_version": SCHEMA_VERSION,
        "created": created,
        "mode": suite.mode,
        "dry_run": suite.dry_run,
        "output_dir": _output_dir(suite, place),
        "overwrite": suite.overwrite,
        "resume": suite.resume,
        "preflight": suite.preflight,
        "allow_all_subsets": suite.allow_all_subsets,
        "model": model,
        "harness": harness_of(_image(suite, place)),
        "code": asdict(code),
        "tasks": [_merged(suite, task) for task in tasks],
        "secrets": _secrets(model, tasks, place),
    }
    _refuse_whole_families(plan)
    return Planned(plan, revealed)


def harness_of(image: str | None) -> dict[str, Any]:
    """Before a registry was asked: a digest in the reference is all that is known of it."""
    return {
        "image": image,
        "requested_image": image,
        "image_pinned_by_digest": is_pinned(image),
        "index_digest": None,
        "platform_digest": None,
    }


def is_pinned(image: str | None) -> bool:
    return image is not None and _PINNED.search(image) is not None


def _model(suite: Suite, place: Place) -> tuple[dict[str, Any], dict[str, str]]:
    endpoint = suite.target.api_endpoint
    if endpoint.url is None:
        raise UsageError(
            f"No endpoint: set {URL_VARIABLE} to its full URL, ending in /v1/completions or /v1/chat/completions."
        )
    if endpoint.model_id is None:
        raise UsageError(
            "No model: set EVAL_MODEL_HANDLE to the name that the server was started with (--served-model-name)."
        )
    _check_endpoint(endpoint.url, endpoint.type)
    _check_key_name(endpoint.api_key_name, place)
    hides_url = not PLAIN_URL.fullmatch(endpoint.url)
    model = {
        "id": endpoint.model_id,
        "endpoint_url": None if hides_url else endpoint.url,
        "endpoint_url_variable": URL_VARIABLE if hides_url else None,
        "endpoint_type": endpoint.type,
        "api_key_name": endpoint.api_key_name,
    }
    return model, {URL_VARIABLE: endpoint.url} if hides_url else {}


def _check_endpoint(url: str, kind: str | None) -> None:
    if kind not in ENDPOINT_TYPES:
        raise UsageError(f"The endpoint type is {kind!r}: set EVAL_ENDPOINT_TYPE to completions or chat.")
    parts = urlsplit(url)
    shown = redact_url(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            f"The endpoint {shown!r} is no URL: give http(s)://HOST/v1/completions or …/v1/chat/completions."
        )
    path = parts.path.rstrip("/")
    found = "chat" if path.endswith("/chat/completions") else "completions" if path.endswith("/completions") else None
    if found is None:
        raise UsageError(
            f"The endpoint {shown} must be the full URL: end it in /v1/completions or /v1/chat/completions."
        )
    if found != kind:
        raise UsageError(
            f"The endpoint {shown} is one of type {found}, the type asked for is {kind}: "
            "chat suites need …/v1/chat/completions, the others …/v1/completions; "
            "with -c direct EVAL_ENDPOINT_TYPE decides."
        )


def _check_key_name(name: str | None, place: Place) -> None:
    """What is not in capitals may be the token itself, so it is not shown."""
    if name is None:
        return
    if is_variable_name(name) and place.has(name):
        _check_token(name, place.environ.get(name))
        return
    if not is_variable_name(name) or name.upper() != name:
        raise UsageError(
            "target.api_endpoint.api_key_name is not the name of a variable that is set: give the NAME of the "
            "variable with the token (EVAL_API_KEY_NAME=ENDPOINT_TOKEN), never the token itself."
        )
    raise UsageError(
        f"{name}, named as the endpoint's token, is not set: export it, "
        "or set EVAL_API_KEY_NAME=null for an endpoint without authentication."
    )


def _check_token(name: str, value: str | None) -> None:
    if value and not fits_a_header(value):
        raise UsageError(
            f"{name} holds a line break, a space at an end or another character that no HTTP header can carry: "
            "export the token alone."
        )


def _output_dir(suite: Suite, place: Place) -> str:
    given = suite.output_dir
    if given is None:
        raise UsageError("No place for results: set EVAL_RESULTS_DIR to a folder on storage that outlives the job.")
    if UNSPEAKABLE.search(given):
        raise UsageError(
            f"output_dir {given!r} has a line break, another control character or bytes that are no UTF-8: "
            "choose another EVAL_RESULTS_DIR."
        )
    if not place.is_remote:
        return os.path.normpath(place.folder / Path(given).expanduser())
    if not PurePosixPath(given).is_absolute():
        raise UsageError(
            f"output_dir {given!r} is relative, and means nothing on another machine: give the absolute path there."
        )
    return str(PurePosixPath(given))


def _image(suite: Suite, place: Place) -> str | None:
    """None where no container is started: a manifest must not name an image that nothing ran in."""
    return suite.run.env.container_image if place.runs_images else None


def _tasks(suite: Suite) -> Iterator[TaskConfig]:
    """Filters are the list of tasks, exactly; what the suite says of them applies where it has them."""
    known = {task.name: task for task in suite.evaluation.tasks}
    listed = [task.name for task in suite.evaluation.tasks]
    names = listed if suite.task_filters is None else list(dict.fromkeys(suite.task_filters))
    _check_distinct(names)
    if not names:
        raise UsageError("No tasks: name them with -t TASK, or list them under evaluation.tasks.")
    for name in names:
        _check_task_name(name)
        yield known.get(name) or TaskConfig(name=name)


def _check_distinct(names: list[str]) -> None:
    """Also on storage that does not tell capitals apart."""
    folders: dict[str, str] = {}
    for name in names:
        earlier = folders.setdefault(unicodedata.normalize("NFC", name).casefold(), name)
        if earlier is not name or names.count(name) > 1:
            raise UsageError(f"Tasks {earlier!r} and {name!r} would write to one folder: remove one.")


def _check_task_name(name: str) -> None:
    """It becomes a folder and a word of a command line."""
    is_word = name.isprintable() and name == name.strip() and not name.startswith("-")
    if name in ("", ".", "..") or not is_word or "/" in name or "\\" in name:
        raise UsageError(
            f"{name!r} cannot be a task: it names a folder, so it has no separators; `nemo-evaluator ls` lists tasks."
        )


def _merged(suite: Suite, task: TaskConfig) -> dict[str, Any]:
    """The task's values over the suite's; `extra` and the adapter's key by key; unset values left out."""
    base, own = suite.evaluation.nemo_evaluator_config, task.nemo_evaluator_config
    params = base.params | own.params
    params["extra"] = _set({**base.config.params.extra, **own.config.params.extra})
    adapter_config = _set({**base.adapter_config, **own.adapter_config})
    _check_adapter(task.name, adapter_config)
    return {
        "name": task.name,
        "params": _set(params),
        "adapter_config": adapter_config,
        "datasets": _datasets(task),
    }


def _check_adapter(task: str, config: Mapping[str, Any]) -> None:
    """The job would refuse it, after its time in the queue."""
    mixed = sorted(config.keys() - BESIDE_A_CHAIN)
    if mixed and config.get("interceptors"):
        raise UsageError(
            f"Task {task!r}: adapter_config has interceptors and {', '.join(mixed)}; an adapter takes a list of "
            f"them or such switches: set these to null (…adapter_config.{mixed[0]}=null), or leave the list out."
        )


def _datasets(task: TaskConfig) -> list[str]:
    for dataset in task.datasets or ():
        if not REPOSITORY.fullmatch(dataset):
            raise UsageError(f"Task {task.name!r}: datasets holds {dataset!r}: write ORG/NAME or ORG/NAME@REVISION.")
    return list(datasets_of(task.name) if task.datasets is None else task.datasets)


def _set(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value not in (None, "", "null", "None", {})}


def _secrets(model: Mapping[str, Any], tasks: list[TaskConfig], place: Place) -> list[str]:
    needed = [name for name in (model["api_key_name"], model["endpoint_url_variable"]) if name]
    required = [name for task in tasks for name in _required(task, place)]
    forwarded = [name for name in place.forwarded_secrets if place.environ.get(name)]
    spelled = [name for name, value in place.env_vars.items() if value and is_secret(name, value)]
    return list(dict.fromkeys([*needed, *required, *forwarded, *spelled, *place.platform_secrets]))


def _required(task: TaskConfig, place: Place) -> tuple[str, ...]:
    names = task.required_env
    if names is None:
        gate = None if is_offline(place.environ) else GATED.get(re.split(r"[_.\-]", task.name)[0])
        names = (gate,) if gate else ()
    for name in names:
        if not place.has(name):
            raise UsageError(
                f"Task {task.name!r} needs {name}, which is not set: export the token of an account that may read "
                "its dataset, or say `required_env: []` for the task if the dataset is already there."
            )
    return names


def _refuse_whole_families(plan: Mapping[str, Any]) -> None:
    if plan["allow_all_subsets"]:
        return
    for task in plan["tasks"]:
        if task["name"] in SUBSETS and "task" not in task["params"]:
            raise UsageError(
                f"Task {task['name']!r} without a subset is some 350,000 requests: add "
                f"evaluation.nemo_evaluator_config.config.params.task={SUBSETS[task['name']]}, "
                "or allow_all_subsets=true if you want them all."
            )
