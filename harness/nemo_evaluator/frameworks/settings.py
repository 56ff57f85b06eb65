"""What one `run_eval` is to do: validated, complete, and in the shape of run_config.yml."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from nemo_evaluator.config.keypath import did_you_mean
from nemo_evaluator.errors import UsageError
from nemo_evaluator.frameworks.merge import merged
from nemo_evaluator.frameworks.overrides import parse_overrides
from nemo_evaluator.frameworks.tasks import all_tasks, find
from nemo_evaluator.models.payload import split_url
from nemo_evaluator.proxy.config import AdapterConfig

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a number is expected")
    return value


Int = Annotated[int, BeforeValidator(_no_boolean)]
Float = Annotated[float, BeforeValidator(_no_boolean)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, protected_namespaces=())


class Params(Section):
    """Null leaves the choice to the harness."""

    limit_samples: Annotated[Int, Field(ge=1)] | Annotated[Float, Field(gt=0, le=1)] | None = None
    """A number of samples, or a share of them."""
    max_new_tokens: Annotated[Int, Field(ge=1)] | None = None
    max_retries: Annotated[Int, Field(ge=0)] | None = None
    parallelism: Annotated[Int, Field(ge=1)] | None = None
    task: str | None = None
    temperature: Annotated[Float, Field(ge=0)] | None = None
    request_timeout: Annotated[Int, Field(ge=1)] | None = None
    top_p: Annotated[Float, Field(ge=0, le=1)] | None = None
    extra: dict[str, Any] = Field(default_factory=dict)
    """For this harness alone."""


class Config(Section):
    type: str
    output_dir: str
    params: Params = Field(default_factory=Params)
    supported_endpoint_types: list[str] | None = None
    required_capabilities: list[str] | None = None


class ApiEndpoint(Section):
    model_id: str
    url: str
    type: Literal["chat", "completions", "completions_logprob", "embedding"]
    api_key_name: str | None = None
    stream: bool | None = None
    adapter_config: dict[str, Any] = Field(default_factory=dict)


class Target(Section):
    api_endpoint: ApiEndpoint


class RunConfig(Section):
    command: str = ""
    """A Jinja template of a shell command; a benchmark of this project has none."""
    framework_name: str = ""
    pkg_name: str = ""
    config: Config
    target: Target

    @property
    def endpoint(self) -> ApiEndpoint:
        return self.target.api_endpoint

    @property
    def params(self) -> Params:
        return self.config.params

    @property
    def adapter(self) -> AdapterConfig:
        return AdapterConfig.of(self.endpoint.adapter_config)

    @property
    def output_dir(self) -> Path:
        return Path(self.config.output_dir)


@dataclass(frozen=True, slots=True)
class Flags:
    """As given on the command line; None is not given."""

    eval_type: str | None = None
    model_id: str | None = None
    model_type: str | None = None
    model_url: str | None = None
    output_dir: str | None = None
    api_key_name: str | None = None

    def layer(self) -> dict[str, Any]:
        config = {"type": self.eval_type, "output_dir": self.output_dir}
        endpoint = {
            "model_id": self.model_id,
            "type": self.model_type,
            "url": self.model_url,
            "api_key_name": self.api_key_name,
        }
        return {"config": _given(config), "target": {"api_endpoint": _given(endpoint)}}


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def wishes(run_config: Path | None, flags: Flags, overrides: Sequence[str]) -> dict[str, Any]:
    """What the user says, later over earlier: the file, the flags, --overrides."""
    said = merged(_read(run_config) if run_config else {}, flags.layer(), *map(parse_overrides, overrides))
    if missing := list(_missing(said)):
        raise UsageError(f"run_eval needs {' and '.join(missing)}; `nemo-evaluator ls` lists the tasks.")
    return said


REQUIRED = {
    "--eval_type": ("config", "type"),
    "--model_id": ("target", "api_endpoint", "model_id"),
    "--model_type": ("target", "api_endpoint", "type"),
    "--model_url": ("target", "api_endpoint", "url"),
    "--output_dir": ("config", "output_dir"),
}


def _missing(said: Mapping[str, Any]) -> list[str]:
    return [f"{flag} (or {'.'.join(path)})" for flag, path in REQUIRED.items() if _at(said, path) in (None, "")]


def _at(said: Any, path: Sequence[str]) -> Any:
    for name in path:
        said = said.get(name) if isinstance(said, Mapping) else None
    return said


def _read(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_text())
    except OSError as error:
        raise UsageError(f"--run_config {path} cannot be read: {error.strerror}.") from None
    except yaml.YAMLError as error:
        raise UsageError(f"--run_config {path} is no YAML: {' '.join(str(error).split())}.") from None
    if not isinstance(document, dict):
        raise UsageError(f"--run_config {path} holds no mapping: it needs the keys config and target.")
    return document


def resolve(said: Mapping[str, Any], environ: Mapping[str, str]) -> RunConfig:
    """What the user says on top of the defaults of the task it names. Raises UsageError in one line for the first thing
    that is wrong."""
    task = find(str(said["config"]["type"]), all_tasks(), str(said.get("framework_name") or ""))
    names = {"framework_name": task.framework, "pkg_name": task.package, "config": {"type": task.name}}
    try:
        run = RunConfig.model_validate(merged(task.defaults, said, names))
    except ValidationError as error:
        raise UsageError(_told(error)) from None
    _check_endpoint(run, environ)
    run.config.output_dir = str(Path(run.config.output_dir).absolute())
    return run


def _check_endpoint(run: RunConfig, environ: Mapping[str, str]) -> None:
    endpoint, supported = run.endpoint, run.config.supported_endpoint_types
    if supported and endpoint.type not in supported:
        raise UsageError(f"{run.config.type} supports --model_type {' or '.join(supported)}, not {endpoint.type!r}.")
    told = run.adapter.endpoint_type
    if told not in (None, endpoint.type):
        raise UsageError(
            f"adapter_config.endpoint_type {told!r} is not the endpoint's {endpoint.type!r}: leave it out."
        )
    split_url(endpoint.url)
    name = endpoint.api_key_name
    if name is None:
        return
    if not VARIABLE.fullmatch(name):
        raise UsageError("--api_key_name is the name of an environment variable, never the key itself.")
    if not environ.get(name):
        raise UsageError(f"--api_key_name {name} is not set in the environment: export it, or leave the flag out.")


def _told(error: ValidationError) -> str:
    first = error.errors()[0]
    path = [str(part) for part in first["loc"] if isinstance(part, int | str)]
    where = ".".join(path)
    if first["type"] != "extra_forbidden":
        return f"{where}: {first['msg']}, not {first['input']!r}."
    known = _fields(path[:-1])
    hint = did_you_mean(path[-1], known)
    if path[:2] == ["config", "params"]:
        return f"{where} is not known{hint}: arguments of one harness go under config.params.extra."
    return f"{where} is not known{hint}: {'.'.join(path[:-1]) or 'a run'} has {', '.join(known)}."


def _fields(path: Sequence[str]) -> list[str]:
    sections: dict[tuple[str, ...], type[BaseModel]] = {
        (): RunConfig,
        ("config",): Config,
        ("config", "params"): Params,
        ("target",): Target,
        ("target", "api_endpoint"): ApiEndpoint,
    }
    return list(sections[tuple(path)].model_fields)
