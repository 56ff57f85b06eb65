"""`-O key.path=value`: the last word on any key."""

from dataclasses import dataclass
from typing import Any

import yaml

from nemo_evaluator.config.document import ConfigLoader, Document
from nemo_evaluator.config.keypath import KeyPath, as_index, dotted, kind_of, parse_path
from nemo_evaluator.errors import UsageError

PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))


@dataclass(frozen=True, slots=True)
class Override:
    path: KeyPath
    value: Any

    @property
    def label(self) -> str:
        """How errors name it; without the value, which may be a secret."""
        return f"-O {dotted(self.path)}"


def parse_override(text: str) -> Override:
    """Split at the first `=`, so that a value may hold more of them."""
    key, equals, value = text.partition("=")
    path = parse_path(key.strip())
    if not equals or path is None:
        raise UsageError(f"-O {key}: an override is KEY=VALUE, such as -O benchmarks[0].repeats=4")
    if str(path[0]).startswith("_"):
        raise UsageError(
            f"-O {key}: variables that start with _ are filled in before overrides; override the key itself"
        )
    return Override(path, parse_value(value, f"-O {key}"))


def parse_value(text: str, label: str) -> Any:
    """Quoted strings, `[...]` and `{...}` are YAML; anything else is one scalar: null, a bool, a number, else text.

    So a prompt such as `Answer: yes # really` stays whole, where YAML would see a mapping and a comment.
    """
    stripped = text.strip()
    try:
        loader = ConfigLoader(stripped)
        if stripped[:1] in ("[", "{", '"', "'"):
            return loader.get_single_data()
        tag = loader.resolve(yaml.ScalarNode, stripped, (True, False))  # type: ignore[no-untyped-call]
        is_plain = stripped != "" and tag in PLAIN_TAGS
        return loader.construct_object(yaml.ScalarNode(tag, stripped)) if is_plain else text
    except yaml.YAMLError as error:
        problem = error.problem if isinstance(error, yaml.MarkedYAMLError) else str(error).splitlines()[0]
        raise UsageError(f"{label}: the value is not valid YAML ({problem}); put text into quotes") from error


def apply_override(document: Document, override: Override, label: str = "") -> Document:
    """Unlike a file's null, an override's null is kept until nulls are pruned: it may go into `params`."""
    label = label or override.label
    path, data = _placed(document.data, override.path, override.value, (), label)
    changed = Document(data, dict(document.marks), document.source)
    changed.drop_marks(path)
    changed.marks[path] = label
    return changed


def _placed(container: Any, rest: KeyPath, value: Any, done: KeyPath, label: str) -> tuple[KeyPath, Any]:
    """The path as it was taken (`.0` of a list is an index), and a copy of the container with the value in place."""
    if not rest:
        return done, value
    part, deeper = rest[0], rest[1:]
    if isinstance(container, list):
        index = _index_in(container, part, done, label)
        path, item = _placed(container[index], deeper, value, (*done, index), label)
        return path, [*container[:index], item, *container[index + 1 :]]
    if container is not None and not isinstance(container, dict):
        raise UsageError(f"{label}: {dotted(done)} is {kind_of(container)} and has no keys")
    if isinstance(part, int):
        raise UsageError(f"{label}: {dotted(done) or 'the config'} is not a list, so it has no [{part}]")
    mapping = container or {}
    path, item = _placed(mapping.get(part), deeper, value, (*done, part), label)
    return path, {**mapping, part: item}


def _index_in(items: list[Any], part: str | int, done: KeyPath, label: str) -> int:
    index = as_index(part)
    if index is None:
        raise UsageError(f"{label}: {dotted(done)} is a list; write {dotted(done)}[0], not a key {part!r}")
    if index >= len(items):
        last = f"the last is [{len(items) - 1}]" if items else "it is empty"
        raise UsageError(f"{label}: {dotted(done)} has no [{index}]; {last}")
    return index
