"""The flags of `nel eval run`: a config of their own with --bench alone, changes to the config beside a file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nemo_evaluator.config.checks import protocol_of
from nemo_evaluator.config.document import Document
from nemo_evaluator.config.keypath import KeyPath, did_you_mean, dotted
from nemo_evaluator.config.overrides import Override, apply_override
from nemo_evaluator.config.references import literal
from nemo_evaluator.errors import UsageError

SERVICE = "model"
"""What the one service of a config made from flags is called, so that -O services.model.… works."""

API_KEY_VARIABLES = ("NEMO_API_KEY", "NVIDIA_API_KEY")


@dataclass(frozen=True, slots=True)
class Flags:
    """As given on the command line; None is not given."""

    bench: str | None = None
    repeats: int | None = None
    max_problems: int | None = None
    max_error_rate: float | None = None
    model_url: str | None = None
    model_id: str | None = None
    api_key: str | None = field(default=None, repr=False)
    system_prompt: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    output_dir: str | None = None

    @property
    def of_benchmarks(self) -> dict[str, Any]:
        return _given(repeats=self.repeats, max_problems=self.max_problems, max_error_rate=self.max_error_rate)

    @property
    def of_service(self) -> dict[str, Any]:
        return _given(url=self.model_url, model=self.model_id, api_key=self.api_key)

    @property
    def of_generation(self) -> dict[str, Any]:
        return _given(temperature=self.temperature, max_tokens=self.max_tokens)


FLAG_OF_KEY = {
    "repeats": "--repeats",
    "max_problems": "--max-problems",
    "max_error_rate": "--max-error-rate",
    "url": "--model-url",
    "protocol": "--model-url",
    "model": "--model-id",
    "api_key": "--api-key",
    "system_prompt": "--system-prompt",
    "temperature": "--temperature",
    "max_tokens": "--max-tokens",
    "dir": "--output-dir",
    "name": "--bench",
}


def _given(**values: Any) -> dict[str, Any]:
    """Flags are taken as they are: a `${` in a prompt is no reference."""
    return {
        key: literal(value) if isinstance(value, str) else value for key, value in values.items() if value is not None
    }


def from_flags(flags: Flags, environ: Mapping[str, str]) -> dict[str, Any]:
    """The config that the same YAML would give."""
    benchmark = {
        **_given(name=flags.bench),
        "solver": {"type": "simple", "service": SERVICE, **_given(system_prompt=flags.system_prompt)},
        **flags.of_benchmarks,
    }
    return {
        "services": {SERVICE: _service(flags, environ)},
        "benchmarks": [benchmark],
        "output": _given(dir=flags.output_dir),
    }


def _service(flags: Flags, environ: Mapping[str, str]) -> dict[str, Any]:
    url = flags.model_url or environ.get("NEMO_MODEL_URL")
    model = flags.model_id or environ.get("NEMO_MODEL_ID")
    if not url:
        raise UsageError("--bench without a config needs --model-url (or NEMO_MODEL_URL in the environment)")
    if not model:
        raise UsageError("--bench without a config needs --model-id (or NEMO_MODEL_ID in the environment)")
    protocol = protocol_of(url) or "chat_completions"
    return {
        **_given(type="api", url=url, model=model, protocol=protocol),
        **_api_key(flags, environ),
        "generation": flags.of_generation,
    }


def _api_key(flags: Flags, environ: Mapping[str, str]) -> dict[str, str]:
    """A key of the environment is referred to by its name, so that no snapshot holds it."""
    if flags.api_key is not None:
        return _given(api_key=flags.api_key)
    variable = next((name for name in API_KEY_VARIABLES if environ.get(name)), None)
    return {"api_key": f"${{{variable}}}"} if variable else {}


def marks_of_flags(data: Any, path: KeyPath = ()) -> dict[KeyPath, str]:
    """The flag behind each key of a config made from flags."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    marks: dict[KeyPath, str] = {}
    for key, item in items:
        flag = FLAG_OF_KEY.get(str(key))
        if flag and not isinstance(item, dict):
            marks[(*path, key)] = flag
        marks |= marks_of_flags(item, (*path, key))
    return marks


def apply_flags(document: Document, flags: Flags) -> Document:
    """Every flag changes the config or is refused; --bench is applied last of all, see `load`."""
    changes = [
        *_service_changes(document.data, flags),
        *_benchmark_changes(document.data, flags),
        *_generation_changes(document.data, flags),
        *((("output", key), value) for key, value in _given(dir=flags.output_dir).items()),
    ]
    for path, value in changes:
        document = apply_override(document, Override(path, value), label=FLAG_OF_KEY[str(path[-1])])
    return document


Change = tuple[KeyPath, Any]


def _service_changes(data: dict[str, Any], flags: Flags) -> list[Change]:
    changes = flags.of_service
    if not changes:
        return []
    services = list(_mapping(data, "services"))
    if len(services) != 1:
        flag = FLAG_OF_KEY[next(iter(changes))]
        names = ", ".join(services) or "none"
        raise UsageError(
            f"{flag} applies to a config with one service; this one has {len(services)} ({names}); "
            f"use -O services.NAME.{next(iter(changes))}=..."
        )
    return [(("services", services[0], key), value) for key, value in changes.items()]


def _benchmark_changes(data: dict[str, Any], flags: Flags) -> list[Change]:
    changes: list[Change] = []
    prompt = _given(system_prompt=flags.system_prompt)
    for index, benchmark in enumerate(_benchmarks(data)):
        path: KeyPath = ("benchmarks", index)
        solver = _mapping(benchmark, "solver")
        if prompt and solver.get("type") == "custom":
            raise UsageError(
                f"--system-prompt cannot reach {dotted((*path, 'solver'))}, which is custom; use its config"
            )
        changes += [((*path, key), value) for key, value in flags.of_benchmarks.items()]
        changes += [((*path, "solver", key), value) for key, value in prompt.items()]
    return changes


def _generation_changes(data: dict[str, Any], flags: Flags) -> list[Change]:
    """On every service, and on every solver that says otherwise."""
    changes: list[Change] = []
    for key, value in flags.of_generation.items():
        changes += [(("services", name, "generation", key), value) for name in _mapping(data, "services")]
        for index, benchmark in enumerate(_benchmarks(data)):
            solver = _mapping(benchmark, "solver")
            if solver.get("type") == "custom" and solver.get("service") is None:
                where = dotted(("benchmarks", index, "solver"))
                raise UsageError(f"{FLAG_OF_KEY[key]} cannot reach {where}, which uses no service; use its config")
            if key in _mapping(solver, "generation"):
                changes.append((("benchmarks", index, "solver", "generation", key), value))
    return changes


def _mapping(data: Any, key: str) -> dict[str, Any]:
    """What is not a mapping is left for validation to refuse, with its line."""
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else {}


def _benchmarks(data: dict[str, Any]) -> list[Any]:
    value = data.get("benchmarks")
    return value if isinstance(value, list) else []


def chosen(bench: str, names: list[str]) -> list[int]:
    """Which of a config's benchmarks --bench means; the same name twice means both."""
    indices = [index for index, name in enumerate(names) if name == bench]
    if not indices:
        hint = did_you_mean(bench, names)
        raise UsageError(f"--bench {bench!r} is not in the config{hint}; it has: {', '.join(names)}")
    return indices
