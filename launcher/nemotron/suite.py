"""What a composed suite may say, validated: unknown keys, wrong types and empty values are settled here."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from nemotron.errors import UsageError, nearest

NULL_WORDS = ("", "null", "None")


def _null(value: object) -> object:
    """An environment variable cannot hold null, so words say it."""
    return None if isinstance(value, str) and value.strip() in NULL_WORDS else value


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Text = Annotated[str, BeforeValidator(_as_text)]
Positive = Annotated[int, Field(gt=0)] | Annotated[float, Field(gt=0)]
OptionalText = Annotated[str | None, BeforeValidator(_as_text), BeforeValidator(_null)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Params(_Section):
    """Unset values are left out of the harness's command."""

    task: OptionalText = None
    limit_samples: Annotated[Positive | None, BeforeValidator(_null)] = None
    """The first N of each task; below 1 a share of it."""
    parallelism: Annotated[Annotated[int, Field(gt=0)] | None, BeforeValidator(_null)] = None
    request_timeout: Annotated[Positive | None, BeforeValidator(_null)] = None
    max_retries: Annotated[Annotated[int, Field(ge=0)] | None, BeforeValidator(_null)] = None
    temperature: Annotated[Annotated[float, Field(ge=0)] | None, BeforeValidator(_null)] = None
    top_p: Annotated[Annotated[float, Field(gt=0, le=1)] | None, BeforeValidator(_null)] = None
    max_new_tokens: Annotated[Annotated[int, Field(gt=0)] | None, BeforeValidator(_null)] = None
    extra: dict[str, Any] = {}


class HarnessRun(_Section):
    params: Params = Params()


class AdapterEndpoint(_Section):
    adapter_config: dict[str, Any] = {}


class AdapterTarget(_Section):
    api_endpoint: AdapterEndpoint = AdapterEndpoint()


class HarnessConfig(_Section):
    """Named as the harness names it: `config.params` and `target.api_endpoint.adapter_config`."""

    config: HarnessRun = HarnessRun()
    target: AdapterTarget = AdapterTarget()

    @property
    def params(self) -> dict[str, Any]:
        return self.config.params.model_dump(exclude_unset=True)

    @property
    def adapter_config(self) -> dict[str, Any]:
        return self.target.api_endpoint.adapter_config


class TaskConfig(_Section):
    name: Text
    nemo_evaluator_config: HarnessConfig = HarnessConfig()
    required_env: tuple[str, ...] | None = None
    """Names of variables without which the task fails; null: those this project knows of."""
    datasets: tuple[Text, ...] | None = None
    """What it reads from the hub, as ORG/NAME or ORG/NAME@REVISION; null: those this project knows of."""


class Evaluation(_Section):
    nemo_evaluator_config: HarnessConfig = HarnessConfig()
    tasks: tuple[TaskConfig, ...] = ()


class Endpoint(_Section):
    url: OptionalText = None
    model_id: OptionalText = None
    type: OptionalText = "completions"
    api_key_name: OptionalText = None


class Target(_Section):
    api_endpoint: Endpoint = Endpoint()


class RunEnv(BaseModel):
    """Keys beside these two are settings of the profile."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)

    container_image: OptionalText = None
    env_vars: dict[str, OptionalText] = {}

    @property
    def profile_keys(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class Run(_Section):
    env: RunEnv = RunEnv()


class Suite(_Section):
    mode: Literal["direct"] = "direct"
    output_dir: OptionalText = None
    overwrite: bool = False
    resume: bool = False
    dry_run: bool = False
    preflight: bool = True
    allow_all_subsets: bool = False
    task_filters: tuple[Text, ...] | None = None
    harness_image: OptionalText = None
    run: Run = Run()
    target: Target = Target()
    evaluation: Evaluation = Evaluation()

    @model_validator(mode="after")
    def _one_way_with_results(self) -> "Suite":
        if self.overwrite and self.resume:
            raise ValueError("overwrite=true and resume=true contradict each other: choose one")
        return self


def parse_suite(data: Mapping[str, Any], name: str) -> Suite:
    """All problems in one error."""
    try:
        return Suite.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"{name}: {'; '.join(_problems(error.errors()))}") from None


def _problems(errors: list[ErrorDetails]) -> Iterator[str]:
    for error in errors:
        path = ".".join(str(part) for part in error["loc"])
        parent, _, key = path.rpartition(".")
        if error["type"] != "extra_forbidden":
            given = "" if isinstance(error["input"], dict) else f" is {error['input']!r}:"
            yield f"{path}{given} {error['msg'].removeprefix('Value error, ')}".strip()
        elif parent.endswith("config.params"):
            guess = nearest(key, Params.model_fields)
            yield f"{parent} has no {key!r}.{guess} Arguments of one harness go under extra: {parent}.extra.{key}"
        else:
            yield f"unknown key {path!r}.{nearest(key, _known(error['loc'][:-1]))}"


def _known(path: tuple[int | str, ...]) -> list[str]:
    """The keys that the section at `path` has."""
    model: Any = Suite
    for part in path:
        if isinstance(part, str):
            annotation = model.model_fields[part].annotation
            model = TaskConfig if part == "tasks" else annotation
    return list(model.model_fields)
