"""plan.json, read by hand: everything the job needs was decided at submission, only secrets are read here, by name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nemo_evaluator.direct.errors import Refused
from nemo_evaluator.direct.fields import Fields

SCHEMA_VERSION = 1
ENDPOINT_TYPES = ("completions", "chat")
PARAMS = (
    "task",
    "limit_samples",
    "parallelism",
    "request_timeout",
    "max_retries",
    "temperature",
    "top_p",
    "max_new_tokens",
    "extra",
)


@dataclass(frozen=True)
class Model:
    id: str
    endpoint_url: str | None
    endpoint_url_variable: str | None
    """Names the variable with the URL when the URL itself is a secret."""
    endpoint_type: str
    api_key_name: str | None


@dataclass(frozen=True)
class Harness:
    image: str | None
    requested_image: str | None
    image_pinned_by_digest: bool
    index_digest: str | None
    platform_digest: str | None


@dataclass(frozen=True)
class Code:
    nemotron_version: str
    git_sha: str | None
    git_dirty: bool | None


@dataclass(frozen=True)
class Task:
    name: str
    params: dict[str, Any]
    adapter_config: dict[str, Any]
    datasets: list[str]
    """On the hub, as ORG/NAME or ORG/NAME@REVISION."""


@dataclass(frozen=True)
class Plan:
    created: str
    mode: str
    dry_run: bool
    output_dir: Path
    overwrite: bool
    resume: bool
    preflight: bool
    allow_all_subsets: bool
    model: Model
    harness: Harness
    code: Code
    tasks: list[Task]
    secrets: list[str]

    def folder(self, task: Task) -> Path:
        return self.output_dir / task.name


def read_plan(path: Path) -> Plan:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refused(f"{path} cannot be read ({error.strerror}): give the path of a plan.json.") from error
    except ValueError as error:
        raise Refused(f"{path} is not JSON ({error}): submit again to get a new plan.") from error
    return parse_plan(document)


def parse_plan(document: Any) -> Plan:
    fields = Fields(document, "plan")
    _check_version(fields)
    plan = Plan(
        created=fields.text("created"),
        mode=fields.text("mode"),
        dry_run=fields.flag("dry_run"),
        output_dir=Path(fields.text("output_dir")),
        overwrite=fields.flag("overwrite"),
        resume=fields.flag("resume"),
        preflight=fields.flag("preflight"),
        allow_all_subsets=fields.flag("allow_all_subsets"),
        model=_model(fields.nested("model")),
        harness=_harness(fields.nested("harness")),
        code=_code(fields.nested("code")),
        tasks=[_task(Fields(item, f"plan.tasks[{n}]")) for n, item in enumerate(fields.items("tasks"))],
        secrets=_names(fields.items("secrets"), "plan.secrets"),
    )
    fields.done()
    return plan


def _check_version(fields: Fields) -> None:
    """First of all: of a plan of another version nothing else can be judged."""
    version = fields.number("schema_version")
    if version != SCHEMA_VERSION:
        raise Refused(
            f"plan.schema_version is {version}, this runner reads {SCHEMA_VERSION}: "
            "submit again with the launcher that this runner belongs to."
        )


def _model(fields: Fields) -> Model:
    model = Model(
        id=fields.text("id"),
        endpoint_url=fields.optional_text("endpoint_url"),
        endpoint_url_variable=fields.optional_text("endpoint_url_variable"),
        endpoint_type=fields.text("endpoint_type"),
        api_key_name=fields.optional_text("api_key_name"),
    )
    fields.done()
    return model


def _harness(fields: Fields) -> Harness:
    harness = Harness(
        image=fields.optional_text("image"),
        requested_image=fields.optional_text("requested_image"),
        image_pinned_by_digest=fields.flag("image_pinned_by_digest"),
        index_digest=fields.optional_text("index_digest"),
        platform_digest=fields.optional_text("platform_digest"),
    )
    fields.done()
    return harness


def _code(fields: Fields) -> Code:
    code = Code(fields.text("nemotron_version"), fields.optional_text("git_sha"), fields.optional_flag("git_dirty"))
    fields.done()
    return code


def _task(fields: Fields) -> Task:
    task = Task(
        name=fields.text("name"),
        params=fields.mapping("params"),
        adapter_config=fields.mapping("adapter_config"),
        datasets=_names(fields.items("datasets"), fields.place("datasets"), "names of datasets"),
    )
    fields.done()
    return task


def _names(values: list[Any], place: str, wanted: str = "names of variables") -> list[str]:
    for value in values:
        if not isinstance(value, str) or not value:
            raise Refused(f"{place} holds {value!r}, {wanted} are needed: submit again to get a new plan.")
    return values
