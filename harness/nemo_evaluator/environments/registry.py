"""From what a user writes (`gsm8k`, `mine.py:trivia`) to an environment.

The modules of `nemo_evaluator.benchmarks` are the bundled benchmarks: a file there is a benchmark of the file's name,
imported when it is asked for.
"""

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import pkgutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, MappingProxyType, ModuleType
from typing import Any, TypeVar

from nemo_evaluator.environments.base import EvalEnvironment
from nemo_evaluator.environments.told import told
from nemo_evaluator.errors import EvaluationError, UsageError

BUNDLED_PACKAGE = "nemo_evaluator.benchmarks"
ACCEPTED_FORMS = "a benchmark's name (see `nel list`), path.py or path.py:name"

Environment = TypeVar("Environment", bound=type[EvalEnvironment])


@dataclass(frozen=True, slots=True)
class BenchmarkInfo:
    """One line of `nel list`."""

    name: str
    summary: str
    source: str
    dataset: str | None
    size: int | None
    """None when only loading the data would tell."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a benchmark is registered."""

    file: str
    line: int
    module: str
    module_doc: str | None

    @classmethod
    def of(cls, frame: FrameType) -> "Place":
        module = frame.f_globals
        return cls(frame.f_code.co_filename, frame.f_lineno, module["__name__"], module.get("__doc__"))

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class _Entry:
    environment: type[EvalEnvironment]
    place: Place


_REGISTERED: dict[str, _Entry] = {}


def register(name: str) -> Callable[[Environment], Environment]:
    """Class decorator: make an environment known by `name` (case does not matter)."""
    place = Place.of(sys._getframe(1))

    def decorate(environment: Environment) -> Environment:
        add(name, environment, place)
        return environment

    return decorate


def add(name: str, environment: type[EvalEnvironment], place: Place) -> None:
    """Register under a name nobody has; the same line again (a file imported twice) replaces itself."""
    key = name.casefold()
    if key in bundled_names() and place.module != f"{BUNDLED_PACKAGE}.{key}":
        raise UsageError(
            f"Two benchmarks are named {name!r}: {BUNDLED_PACKAGE}.{key} (bundled) and {place}. "
            "Choose another name for yours."
        )
    known = _REGISTERED.get(key)
    if known and str(known.place) != str(place):
        raise UsageError(
            f"Two benchmarks are named {name!r}: {known.place} and {place}. Rename one of them and run again."
        )
    environment.registered_name = name
    _REGISTERED[key] = _Entry(environment, place)


def resolve(spec: str, params: Mapping[str, Any] = MappingProxyType({})) -> EvalEnvironment:
    """The environment that `spec` names, made with `params`."""
    environment = find(spec)
    if missing := environment.__abstractmethods__:
        raise UsageError(f"Benchmark {spec!r} does not define {', '.join(sorted(missing))}. Add them to its class.")
    try:
        inspect.signature(environment).bind(**params)
    except TypeError as error:
        raise UsageError(f"Benchmark {spec!r} cannot be made with params {dict(params)!r}: {error}.") from None
    try:
        return environment(**params)
    except EvaluationError:
        raise
    except Exception as error:  # the border: a user's constructor may raise anything
        raise UsageError(f"Benchmark {spec!r} cannot be made: {told(error)}") from error


def find(spec: str) -> type[EvalEnvironment]:
    scheme, separator, _ = spec.partition("://")
    if separator:
        raise UsageError(f"Unknown benchmark scheme {scheme + separator!r} in {spec!r}. Accepted: {ACCEPTED_FORMS}.")
    path, name = _split_file_spec(spec)
    return _from_file(path, name) if path else _by_name(spec)


def bundled_names() -> list[str]:
    """Found without importing any of them."""
    package = importlib.util.find_spec(BUNDLED_PACKAGE)
    locations = package.submodule_search_locations if package else None
    return sorted(module.name for module in pkgutil.iter_modules(locations))


def available() -> list[BenchmarkInfo]:
    """Every benchmark that can be asked for by name, the user's own registrations included."""
    bundled = bundled_names()
    for name in bundled:
        importlib.import_module(f"{BUNDLED_PACKAGE}.{name}")
    return [
        _describe(entry.environment, "builtin" if key in bundled else "user")
        for key, entry in sorted(_REGISTERED.items())
    ]


def _describe(environment: type[EvalEnvironment], source: str) -> BenchmarkInfo:
    summary = inspect.cleandoc(environment.__doc__ or "").partition("\n")[0]
    return BenchmarkInfo(
        name=environment.registered_name or environment.__name__,
        summary=summary,
        source=source,
        dataset=environment.dataset_label(),
        size=environment.known_size(),
    )


def _by_name(name: str) -> type[EvalEnvironment]:
    key = name.casefold()
    bundled = bundled_names()
    if key in bundled:
        importlib.import_module(f"{BUNDLED_PACKAGE}.{key}")
    if entry := _REGISTERED.get(key):
        return entry.environment
    near = difflib.get_close_matches(key, [*bundled, *_REGISTERED], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UsageError(f"Unknown benchmark {name!r}.{hint} Accepted: {ACCEPTED_FORMS}.")


def _split_file_spec(spec: str) -> tuple[str, str | None]:
    """`dir/mine.py:trivia` is (dir/mine.py, trivia); a plain name has no path."""
    if spec.endswith(".py"):
        return spec, None
    path, separator, name = spec.rpartition(".py:")
    return (f"{path}.py", name) if separator else ("", None)


def _from_file(path: str, name: str | None) -> type[EvalEnvironment]:
    file = Path(path).expanduser().resolve()
    if not file.is_file():
        raise UsageError(f"No benchmark file {path!r} (looked at {file}). Give the path of a .py file, or {path}:NAME.")
    module = import_file(file)
    found = {key: entry.environment for key, entry in _REGISTERED.items() if entry.place.module == module.__name__}
    listed = ", ".join(sorted(found)) or "none"
    if name is None:
        if len(found) == 1:
            return next(iter(found.values()))
        wanted = f"say which: {path}:NAME" if found else "add one with @register or @benchmark"
        raise UsageError(f"{path} defines {len(found)} benchmarks ({listed}); {wanted}.")
    if environment := found.get(name.casefold()):
        return environment
    raise UsageError(f"{path} defines no benchmark {name!r}; it defines: {listed}.")


def import_file(file: Path) -> ModuleType:
    """Under a synthetic name, so that a file called `json.py` shadows nothing; once per process."""
    module_name = f"nel_byob_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec is not None and spec.loader is not None  # true for every path that ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except EvaluationError:
        del sys.modules[module_name]
        raise
    except Exception as error:  # the border: a user's file may raise anything
        del sys.modules[module_name]
        raise UsageError(f"{file} cannot be imported: {told(error)}") from error
    return module
