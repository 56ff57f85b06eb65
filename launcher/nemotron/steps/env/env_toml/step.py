"""A template of profiles/ -> an env.toml that validates."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nemotron import bundled
from nemotron.config import compose_file
from nemotron.errors import UsageError, unknown
from nemotron.profiles import parse_profile
from nemotron.request import GeneratedFile, Request


def compile_step(request: Request) -> GeneratedFile:
    if request.tasks:
        raise UsageError("env/env_toml has no tasks: leave -t out.")
    config = compose_file(_template(request.config), request.overrides, {})
    path = _output_path(config, request)
    for name, table in config["profiles"].items():
        parse_profile(table, f"profiles.{name}")
    return GeneratedFile(
        path=path,
        text=render(config["about"], config["profiles"]),
        replaces=bool(config["force"]),
        next_step=f"Fill in what is in <angle brackets>; its profiles are {', '.join(config['profiles'])}.",
    )


def _template(name: str) -> Path:
    folder = bundled.folder("profiles")
    path = folder / f"{name}.yaml"
    if "/" in name or not path.is_file():
        raise UsageError(unknown("profile template", name, [path.stem for path in folder.glob("*.yaml")]))
    return path


def _output_path(config: Mapping[str, Any], request: Request) -> Path:
    given = config["output_path"]
    if not given:
        raise UsageError("No output_path: add output_path=env.toml, or another name for a separate file.")
    path = request.folder / Path(str(given)).expanduser()
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(
            f"output_path {given!r} must be a file in a folder that exists: make the folder, or correct the path."
        )
    return path


def render(about: str, profiles: Mapping[str, Mapping[str, Any]]) -> str:
    comment = "".join(f"# {line}\n" for line in about.strip().splitlines())
    return comment + "".join(f"\n[{name}]\n{_table(table)}" for name, table in profiles.items())


def _table(table: Mapping[str, Any]) -> str:
    """Nested tables as dotted keys, so that a profile can be copied up to the next header."""
    return "".join(
        f"{key}.{inner} = {_toml(item)}\n" if inner else f"{key} = {_toml(item)}\n"
        for key, value in table.items()
        for inner, item in (value.items() if isinstance(value, Mapping) else [("", value)])
        if item is not None
    )


def _toml(value: Any) -> str:
    """A basic string of TOML is one of JSON."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
