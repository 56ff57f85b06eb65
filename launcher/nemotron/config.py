"""Suites and overrides to a plain mapping by Hydra, interpolation in profiles by OmegaConf: the only user of either."""

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.errors import HydraException, MissingConfigException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from nemotron import bundled
from nemotron.errors import UsageError, nearest, unknown

PARAMS = "evaluation.nemo_evaluator_config.config.params"
OPEN = (f"{PARAMS}.extra", "evaluation.nemo_evaluator_config.target.api_endpoint.adapter_config", "run.env")
"""Below these any key may be set without Hydra's `+`: what they hold is the harness's or the profile's."""
_MISSING = object()


def compose_suite(config: str, overrides: Sequence[str], environ: Mapping[str, str]) -> dict[str, Any]:
    """`config` is the name of a suite or the path of a YAML file, which inherits suites by name and its neighbours.

    An environment variable that is empty counts as unset.
    """
    return _compose(_find(config), config, overrides, environ, bundled.folder("suites"))


def compose_file(path: Path, overrides: Sequence[str], environ: Mapping[str, str]) -> dict[str, Any]:
    """A config that stands alone."""
    return _compose(path, path.stem, overrides, environ, path.parent)


def interpolate(data: Mapping[str, Any], environ: Mapping[str, str], place: str) -> dict[str, Any]:
    """`${oc.env:NAME}` and `${oc.env:NAME,default}` replaced, and references to other keys."""
    _use(environ)
    try:
        return _plain(OmegaConf.create(dict(data)))
    except OmegaConfBaseException as error:
        raise UsageError(f"{place}: {_first_line(error)}") from None


def alternatives(override: str) -> list[tuple[str, str]]:
    """What a comma list stands for, `a=x,y` or `a=choice(x,y)` or `a=range(1,3)`: overrides of one value each, and
    that value in words. An override that says one thing is its own only alternative."""
    parsed = _parsed(override)
    if not parsed.is_sweep_override():
        return [(override, "")]
    single = [f"{parsed.get_key_element()}={value}" for value in parsed.sweep_string_iterator()]
    return [(one, str(_parsed(one).value())) for one in single]


def override_of(key: str, value: Any) -> str:
    """`key` set to a value of any type, whatever characters are in it."""
    return f"{key}={_spelled(value)}"


def key_of(override: str) -> str:
    """`a.b` of `++a.b=1`."""
    return override.partition("=")[0].lstrip("+~")


def suite_names() -> list[str]:
    return sorted(path.stem for path in bundled.folder("suites").glob("*.yaml"))


def _find(config: str) -> Path:
    """What has a separator or a suffix is a path."""
    is_path = "/" in config or config.endswith((".yaml", ".yml"))
    path = Path(config).expanduser() if is_path else bundled.folder("suites") / f"{config}.yaml"
    if path.is_file():
        return path.absolute()
    if is_path:
        raise UsageError(f"There is no file {config}: give the path of a YAML file, or one of {_listed()}.")
    raise UsageError(unknown("suite", config, suite_names()))


def _compose(
    path: Path, name: str, overrides: Sequence[str], environ: Mapping[str, str], search: Path
) -> dict[str, Any]:
    if path.suffix != ".yaml":
        raise UsageError(f"{path} is read as a Hydra config, whose name must end in .yaml: rename it.")
    _check(overrides)
    _use(environ)
    try:
        with initialize_config_dir(str(path.parent), version_base="1.3"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*missing `_self_`")  # what the suite itself says wins then, as expected
            config = hydra_compose(path.stem, [_search_path(search), *map(_opened, overrides)])
        return _plain(config)
    except HydraException as error:
        raise UsageError(_explained(error, name, path, environ, search)) from None
    except (OmegaConfBaseException, YAMLError) as error:
        raise UsageError(f"{name}: {_first_line(error)}") from None


def _search_path(folder: Path) -> str:
    quoted = str(folder).replace("\\", "\\\\").replace("'", "\\'")
    return f"hydra.searchpath=['file://{quoted}']"


def _check(overrides: Sequence[str]) -> None:
    for override in overrides:
        if "=" not in override and not override.startswith("~"):
            raise UsageError(f"{override!r} is not an override: write KEY=VALUE.")
        if _parsed(override).is_sweep_override():
            raise UsageError(
                f"{override!r} names several values: add -m for a job each, or put one value with commas in quotes of "
                "its own."
            )


def _parsed(override: str) -> Override:
    try:
        return OverridesParser.create().parse_override(override)
    except HydraException:
        key, _, value = override.partition("=")
        raise UsageError(
            f"{override!r} cannot be read as KEY=VALUE of Hydra: put a value with special characters in quotes "
            f"of its own, '{key}=\"{value}\"'."
        ) from None


def _spelled(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool() | int() | float():
            return json.dumps(value)
        case list():
            return f"[{','.join(map(_spelled, value))}]"
    return QuotedString(str(value), Quote.single).with_quotes()


def _opened(override: str) -> str:
    return f"++{override}" if override.startswith(tuple(f"{key}." for key in OPEN)) else override


def _use(environ: Mapping[str, str]) -> None:
    """OmegaConf reads os.environ by itself; here the environment is a parameter."""

    def lookup(name: str, default: Any = _MISSING) -> Any:
        if value := environ.get(name):
            return value
        if default is _MISSING:
            raise ValueError(f"the environment variable {name} is not set: set it, or write ${{oc.env:{name},DEFAULT}}")
        return default

    OmegaConf.register_new_resolver("oc.env", lookup, replace=True)


def _plain(config: Any) -> dict[str, Any]:
    plain: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    return plain


def _explained(error: HydraException, name: str, path: Path, environ: Mapping[str, str], search: Path) -> str:
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        neighbours = {file.stem for file in path.parent.glob("*.yaml")} - {path.stem}
        wanted = unknown("suite", error.missing_cfg_file, neighbours.union(suite_names()))
        return f"{name}: its defaults list cannot be followed. {wanted}"
    match = re.search(r"Could not override '([^']+)'", str(error))
    if match is None:
        return f"{name}: {_first_line(error)}"
    parent, _, key = match[1].rpartition(".")
    siblings = _keys_of(_compose(path, name, (), environ, search), parent)
    if parent == PARAMS:
        return (
            f"{PARAMS} has no {key!r}.{nearest(key, siblings)} "
            f"Arguments of one harness go under extra: {PARAMS}.extra.{key}=VALUE."
        )
    there = f"; there are {', '.join(siblings)}" if siblings else ""
    return f"{name} has no key {match[1]!r}.{nearest(key, siblings)} A new key is written +{match[1]}=VALUE{there}."


def _keys_of(config: dict[str, Any], parent: str) -> list[str]:
    node: Any = config
    for part in parent.split(".") if parent else ():
        node = node.get(part) if isinstance(node, dict) else None
    return list(node) if isinstance(node, dict) else []


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _listed() -> str:
    return ", ".join(suite_names())
