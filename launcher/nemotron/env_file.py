"""env.toml: where it is, what its tables inherit, and the profile that a name stands for."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nemotron.config import interpolate
from nemotron.errors import ProfileError, nearest, unknown
from nemotron.profiles import NamedProfile
from nemotron.secrets import is_secret_name

NAME, VARIABLE = "env.toml", "NEMOTRON_ENV_FILE"


def find_profile(name: str, environ: Mapping[str, str], folder: Path) -> NamedProfile:
    """`folder` is where the search for env.toml begins."""
    path = _find(environ, folder)
    tables = _read(path)
    if name not in tables:
        raise ProfileError(_no_such_profile(name, tables, path))
    place = f"[{name}] of {path}"
    data = interpolate(_inherited(name, tables, path), environ, place)
    named = NamedProfile(name, place, data)
    _check_env_vars(named)
    _check_placeholders(data, place)
    named.with_settings({})
    return named


def _find(environ: Mapping[str, str], folder: Path) -> Path:
    if given := environ.get(VARIABLE):
        path = Path(given).expanduser()
        if not path.is_file():
            raise ProfileError(
                f"{VARIABLE} names {given}, which is no file: correct it, or unset it to search for {NAME}."
            )
        return path.absolute()
    for parent in (folder, *folder.parents):
        if (parent / NAME).is_file():
            return parent / NAME
    raise ProfileError(
        f"There is no {NAME} in {folder} or above: make one with "
        f"`nemotron steps run env/env_toml -c local output_path={NAME}`, or name one with {VARIABLE}."
    )


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProfileError(f"{path} is not TOML: {error}.") from None
    return {name: table for name, table in content.items() if isinstance(table, dict)}


def _no_such_profile(name: str, tables: Mapping[str, dict[str, Any]], path: Path) -> str:
    known = [table for table in tables if "executor" in _inherited(table, tables, path)]
    return f"{unknown('profile', name, known)} They are in {path}."


def _inherited(name: str, tables: Mapping[str, dict[str, Any]], path: Path) -> dict[str, Any]:
    """The table over those it extends; env_vars and the like are merged key by key."""
    chain: list[str] = []
    parent: str | None = name
    while parent is not None:
        if parent in chain:
            raise ProfileError(f"{path}: {' extends '.join([*chain, parent])}: remove one of these.")
        if parent not in tables:
            raise ProfileError(
                f"{path}: [{chain[-1]}] extends {parent!r}, which is not there.{nearest(parent, tables)}"
            )
        chain.append(parent)
        parent = tables[parent].get("extends")
    data: dict[str, Any] = {}
    for table in reversed(chain):
        data = _merged(data, tables[table])
    data.pop("extends", None)
    return data


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    return dict(base) | {
        key: _merged(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
        for key, value in over.items()
    }


def _check_env_vars(profile: NamedProfile) -> None:
    """`HF_TOKEN = "HF_TOKEN"` is always meant as a reference, and would be sent as the token."""
    env_vars = profile.data.get("env_vars", {})
    for name, value in env_vars.items() if isinstance(env_vars, dict) else ():
        if value == name or (
            isinstance(value, str) and is_secret_name(value) and value.isupper() and is_secret_name(name)
        ):
            raise ProfileError(
                f"{profile.place}: env_vars.{name} is the name {value!r}, not a value: "
                f'write "${{oc.env:{value}}}" for the value of that variable.'
            )
        if name == "EVAL_HARNESS_IMAGE":
            raise ProfileError(
                f"{profile.place}: env_vars.{name} would decide for every suite: remove it, "
                f"and export {name} in the shell."
            )


def _check_placeholders(value: Any, place: str, key: str = "") -> None:
    """A generated profile says `<account>` where only its user knows the value."""
    if isinstance(value, str) and re.search("<[^<>]+>", value):
        raise ProfileError(f"{place}: {key} is still {value}: fill in the value of your site, or remove the line.")
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        _check_placeholders(item, place, f"{key}.{name}".lstrip("."))
