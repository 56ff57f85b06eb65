"""A task as the command line of the harness: pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

from nemo_evaluator.direct.plan import Plan, Task

RUN_CONFIG = "run_config.direct.yml"
PLAIN_KEY = re.compile(r"\w[\w-]*", re.ASCII)
PLAIN_TEXT = re.compile(r"[A-Za-z/][A-Za-z0-9_./+-]*", re.ASCII)
YAML_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


@dataclass(frozen=True)
class Command:
    argv: list[str]
    run_config: str | None
    """Text of the file that --run_config names: what --overrides, split at commas and read as YAML, would spoil."""


def build_command(plan: Plan, task: Task, executable: Path, url: str) -> Command:
    folder = plan.folder(task)
    settings = {
        "config": {"params": task.params},
        "target": {"api_endpoint": {"adapter_config": adapter_config(plan, task)}},
    }
    plain, rest = _divide(settings)
    argv = [str(executable), "run_eval", "--eval_type", task.name, "--model_id", plan.model.id]
    argv += ["--model_type", plan.model.endpoint_type, "--model_url", url, "--output_dir", str(folder)]
    if plan.model.api_key_name:
        argv += ["--api_key_name", plan.model.api_key_name]
    if rest:
        argv += ["--run_config", str(folder / RUN_CONFIG)]
    if plain:
        argv += ["--overrides", ",".join(plain)]
    return Command(argv, to_yaml(rest) + "\n" if rest else None)


def adapter_config(plan: Plan, task: Task) -> dict[str, Any]:
    """The adapter's settings with what follows from the place of the task and the type of the endpoint."""
    config = dict(task.adapter_config)
    if config.get("output_dir") is None and not config.get("interceptors"):
        config["output_dir"] = str(plan.folder(task) / "adapter")
    if config.get("endpoint_type") is None:
        config["endpoint_type"] = plan.model.endpoint_type
    return config


def _divide(settings: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """What --overrides carries unharmed, and the rest as a nested mapping."""
    plain: list[str] = []
    rest: dict[str, Any] = {}
    for path, value in _leaves(settings):
        if all(PLAIN_KEY.fullmatch(key) for key in path) and (text := _plain(value)) is not None:
            plain.append(f"{'.'.join(path)}={text}")
        else:
            place = rest
            for key in path[:-1]:
                place = place.setdefault(key, {})
            place[path[-1]] = value
    return plain, rest


def _leaves(mapping: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Values that are set; null means unset and is left to the harness's default."""
    for key, value in mapping.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, key))
        elif value is not None and value != {}:
            yield (*path, key), value


def _plain(value: Any) -> str | None:
    """The value as YAML that is the same with and without a command line around it; None if there is no such text."""
    if isinstance(value, str):
        return value if PLAIN_TEXT.fullmatch(value) and value.lower() not in YAML_WORDS else None
    return to_yaml(value) if isinstance(value, (bool, int, float)) else None


def to_yaml(value: Any) -> str:
    """In flow style and pure ASCII: JSON, but with the numbers and escapes that YAML 1.1 readers understand."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(str(key))}: {to_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(to_yaml, value)) + "]"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float):
        return _float(value)
    return json.dumps(value)


def _float(value: float) -> str:
    """1e-07 would be read as text: YAML 1.1 wants the point and the sign."""
    text = repr(value)
    mantissa, e, exponent = text.partition("e")
    if not e:
        return {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(text, text)
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent if exponent[0] in '+-' else '+' + exponent}"


def _quoted(text: str) -> str:
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if " " <= character <= "~":
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
