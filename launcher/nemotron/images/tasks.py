"""Which tasks an image has: the `core_evals/*/framework.yml` of its layers, read without pulling or running it."""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

import yaml

from nemotron.errors import LauncherError
from nemotron.files import write_json
from nemotron.images.layers import files
from nemotron.images.manifests import Layer
from nemotron.images.reference import Reference
from nemotron.images.registry import PLATFORM, Registry

FRAMEWORK_FILE = re.compile(r"(?P<root>.*/)?core_evals/[^/]+/framework\.yml")
WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
FRAMEWORK_LIMIT = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Task:
    name: str
    framework: str
    endpoint_types: tuple[str, ...]
    """Of completions, chat and others; empty when the image does not say."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Params: the framework's, with the task's own on top."""
    command: str = ""
    """Template of the harness's own command line."""


@dataclass(frozen=True, slots=True)
class TaskList:
    tasks: tuple[Task, ...]
    frameworks: tuple[str, ...]
    layers_read: int
    layers_total: int

    @property
    def is_complete(self) -> bool:
        """True when no layer that could hold another task was left out."""
        return self.layers_read == self.layers_total

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(task.name for task in self.tasks)

    def find(self, name: str) -> Task | None:
        """By name, or by FRAMEWORK.NAME as harnesses take it."""
        for task in self.tasks:
            if name in (task.name, f"{task.framework}.{task.name}"):
                return task
        return None

    def offers(self, name: str) -> bool:
        """A harness also runs FRAMEWORK.ANYTHING, with the framework's defaults."""
        return self.find(name) is not None or any(name.startswith(f"{framework}.") for framework in self.frameworks)


@dataclass(frozen=True, slots=True)
class _Found:
    """What one layer says about frameworks."""

    frameworks: Mapping[str, str] = field(default_factory=dict)
    """Path -> text of framework.yml."""
    hidden: Sequence[str] = ()
    """Paths in older layers that this one deletes, with all below them."""
    is_whole: bool = True
    """False when the rest of the layer was not looked at."""


def read_tasks(
    registry: Registry,
    reference: Reference,
    platform: str = PLATFORM,
    *,
    wanted: Collection[str] = (),
    whole: bool = False,
) -> TaskList:
    """Newest layer first, until one has frameworks and they have all of `wanted`; `whole` reads every layer.

    Wheels are installed together, so that layer is most often the only one; a name that is missing is looked for in
    all of them before it counts as missing.
    """
    layers = registry.manifest(reference, platform).layers
    texts: dict[str, str] = {}
    hidden: list[str] = []
    for count, layer in enumerate(reversed(layers), start=1):
        found = _look_into(registry, reference, layer, whole=whole)
        texts = {path: text for path, text in found.frameworks.items() if not _is_below(path, hidden)} | texts
        hidden += found.hidden
        listed = _task_list(texts, count - (not found.is_whole), len(layers))
        if texts and (wanted or not whole) and all(listed.offers(name) for name in wanted):
            return listed
        if texts and not whole:
            return read_tasks(registry, reference, platform, wanted=wanted, whole=True)
    return _task_list(texts, len(layers), len(layers))


def _look_into(registry: Registry, reference: Reference, layer: Layer, *, whole: bool) -> _Found:
    """A layer never changes, so it is downloaded once, in the part that was needed."""
    cache = registry.settings.cache
    path = cache / "frameworks" / f"{layer.digest.replace(':', '-')}.json" if cache else None
    if path is not None and (known := _remembered(path)) and (known.is_whole or not whole):
        return known
    with registry.layer(reference, layer) as chunks:
        found = _scan(files(chunks), whole=whole)
    if path is not None:
        _remember(path, found)
    return found


def _scan(entries: Iterable[tuple[str, IO[bytes] | None]], *, whole: bool) -> _Found:
    """Builders write a layer folder by folder, so past the frameworks' folder there are no more of it."""
    frameworks: dict[str, str] = {}
    hidden: list[str] = []
    folder = None
    for name, content in entries:
        path = PurePosixPath(name)
        if folder is not None and not whole and not path.is_relative_to(folder):
            return _Found(frameworks, hidden, is_whole=False)
        if path.name == OPAQUE:
            hidden.append(f"{path.parent}/")
        elif path.name.startswith(WHITEOUT):
            hidden.append(str(path.with_name(path.name.removeprefix(WHITEOUT))))
        elif content is not None and FRAMEWORK_FILE.fullmatch(name):
            frameworks[name] = content.read(FRAMEWORK_LIMIT).decode(errors="replace")
            folder = path.parent.parent
    return _Found(frameworks, hidden)


def _is_below(path: str, hidden: Sequence[str]) -> bool:
    return any(path == gone or path.startswith(gone.rstrip("/") + "/") for gone in hidden)


def _task_list(texts: Mapping[str, str], layers_read: int, layers_total: int) -> TaskList:
    definitions = [_definition(path, text) for path, text in sorted(texts.items())]
    tasks = [task for definition in definitions for task in _tasks_of(definition)]
    frameworks = tuple(definition["framework"]["name"] for definition in definitions)
    return TaskList(tuple(sorted(tasks, key=lambda task: task.name)), frameworks, layers_read, layers_total)


def _definition(path: str, text: str) -> dict[str, Any]:
    try:
        definition: dict[str, Any] = yaml.safe_load(text)
        definition["framework"]["name"]
        list(definition.get("evaluations") or [])
    except (yaml.YAMLError, TypeError, KeyError) as error:
        raise LauncherError(f"/{path} of the image is no framework definition ({type(error).__name__}).") from None
    return definition


def _tasks_of(definition: Mapping[str, Any]) -> list[Task]:
    common = definition.get("defaults") or {}
    tasks = []
    for entry in definition.get("evaluations") or []:
        merged = _merged(common, entry.get("defaults") or {})
        config = merged.get("config") or {}
        tasks.append(
            Task(
                name=str(config.get("type", entry.get("name"))),
                framework=str(definition["framework"]["name"]),
                endpoint_types=tuple(config.get("supported_endpoint_types") or ()),
                defaults=config.get("params") or {},
                command=str(merged.get("command") or ""),
            )
        )
    return tasks


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Key by key; null in `over` leaves what is below, as harnesses read it."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            merged[key] = _merged(below, value)
        elif value is not None:
            merged[key] = value
    return merged


def _remembered(path: Path) -> _Found | None:
    try:
        content = json.loads(path.read_text())
        return _Found(content["frameworks"], content["hidden"], content["is_whole"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(path: Path, found: _Found) -> None:
    """A cache that cannot be written is no reason to stop."""
    content = {"frameworks": dict(found.frameworks), "hidden": list(found.hidden), "is_whole": found.is_whole}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, content)
    except OSError:
        return
