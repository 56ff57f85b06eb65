"""sweep.toml: a table a point, named as its folder of results will be.

[step-1000]
env.EVAL_ENDPOINT_URL = "http://node-a:8000/v1/completions"
env.EVAL_MODEL_HANDLE = "step-1000"

[step-2000]
target.api_endpoint.url = "http://node-b:8000/v1/completions"
target.api_endpoint.model_id = "step-2000"
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nemotron.config import interpolate, override_of
from nemotron.errors import UsageError
from nemotron.secrets import is_secret_name, is_variable_name
from nemotron.sweep.points import NAME_LENGTH, RESULTS_KEY, RESULTS_VARIABLE, Point

ENV = "env"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


def read_points(path: Path, overrides: Sequence[str], environ: Mapping[str, str]) -> list[Point]:
    """What a table says is laid over `overrides`, which are those of all points."""
    rows = _read(path)
    if not rows:
        raise UsageError(f"{path} has no tables: write one a point, [NAME] with the overrides below it.")
    return [_point(name, row, f"[{name}] of {path}", overrides, environ) for name, row in rows.items()]


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"There is no file {path}: give the path of a TOML file with a table a point.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}.") from None


def _point(name: str, row: Any, place: str, overrides: Sequence[str], environ: Mapping[str, str]) -> Point:
    if not isinstance(row, dict):
        raise UsageError(
            f"{place} is {row!r}: it must be a table, and what holds for all is given on the command line."
        )
    if not _NAME.fullmatch(name) or len(name) > NAME_LENGTH:
        raise UsageError(f"{place}: the name is that of a folder: use at most {NAME_LENGTH} letters, digits and . _ -")
    given = row.get(ENV, {})
    _check_env(given, place)
    env = {key: str(value) for key, value in interpolate(given, environ, place).items()}
    own = dict(_flat({key: value for key, value in row.items() if key != ENV}))
    chooses_folder = RESULTS_KEY in own or bool(env.get(RESULTS_VARIABLE))
    if any(key[0].isdigit() for key in own):
        raise UsageError(f'{place}: a name with dots is written in quotes, ["{name}.{next(iter(own)).split(".")[0]}"].')
    spelled = tuple(override_of(key, value) for key, value in own.items())
    return Point(name, (*overrides, *spelled), env, chooses_folder)


def _check_env(env: Any, place: str) -> None:
    if not isinstance(env, dict):
        raise UsageError(f'{place}: env is {env!r}: it must be a table of variables, env.EVAL_MODEL_HANDLE = "…".')
    for name, value in env.items():
        if not is_variable_name(name) or isinstance(value, dict | list):
            raise UsageError(f"{place}: env.{name} is no variable: use letters, digits and _, and a plain value.")
        if is_secret_name(name) and value and "${" not in str(value):
            raise UsageError(
                f'{place}: env.{name} spells out a secret: export it, and write "${{oc.env:NAME}}", or name another '
                "variable with env.EVAL_API_KEY_NAME."
            )


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value
