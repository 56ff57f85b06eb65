"""A config as plain data that remembers the file and line, override or flag that each value came from."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from nemo_evaluator.config.keypath import KeyPath, dotted
from nemo_evaluator.errors import UsageError


@dataclass(slots=True)
class Document:
    """Data and, by key path, where each key was written last."""

    data: Any
    marks: dict[KeyPath, str] = field(default_factory=dict)
    """Such as `run.yaml:12`, `-O output.dir` or `--repeats`."""
    source: str = ""
    """The file as the user named it."""

    def origin(self, path: KeyPath) -> str:
        """The mark of the value, else of the nearest thing around it."""
        for length in range(len(path), 0, -1):
            if mark := self.marks.get(path[:length]):
                return mark
        return self.source

    def drop_marks(self, path: KeyPath) -> None:
        self.marks = {key: mark for key, mark in self.marks.items() if key[: len(path)] != path}


def merge(base: Document, overlay: Document) -> Document:
    """Mappings merge key by key, lists and scalars are replaced, and null deletes the key it meets."""
    merged = Document(base.data, dict(base.marks), overlay.source or base.source)
    merged.data = _merged(merged, (), base.data, overlay)
    return merged


def _merged(target: Document, path: KeyPath, below: Any, overlay: Document) -> Any:
    """The value at `path`; marks of `target` follow what happens to it."""
    above = _at(overlay.data, path)
    if not (isinstance(below, dict) and isinstance(above, dict)):
        target.drop_marks(path)
        target.marks |= {key: mark for key, mark in overlay.marks.items() if key[: len(path)] == path}
        return above
    result = dict(below)
    for key, value in above.items():
        here = (*path, key)
        if value is None and key in result:
            del result[key]
            target.drop_marks(here)
        else:
            result[key] = _merged(target, here, below.get(key), overlay)
    return result


def _at(data: Any, path: KeyPath) -> Any:
    for part in path:
        data = data[part]
    return data


class ConfigLoader(yaml.SafeLoader):
    """YAML as PyYAML reads it, except that a date stays text: no key takes a date, and models are named after dates."""


ConfigLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(path: Path, name: str) -> Document:
    """One YAML file; `name` is what errors call it."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read the config {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read the config {name}: it is not UTF-8 text") from error
    return parse(text, name)


def parse(text: str, name: str) -> Document:
    """Data and marks of a YAML text."""
    document = Document(None, source=name)
    try:
        loader = ConfigLoader(text)
        root = loader.get_single_node()
        if root is None:
            raise UsageError(f"the config {name} is empty")
        document.data = _Reader(loader, document).value(root, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}" if mark else name
        raise UsageError(f"{where}: not valid YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{name}: not valid YAML: {str(error).splitlines()[0]}") from error
    return document


class _Reader:
    """Builds the data of a node tree and notes the line of every key and list item."""

    def __init__(self, loader: ConfigLoader, document: Document) -> None:
        self.loader = loader
        self.document = document
        self.open: set[int] = set()

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return self.loader.construct_object(node)
        if id(node) in self.open:
            raise UsageError(f"{self._mark(node)}: {dotted(path)} contains itself")
        self.open.add(id(node))
        try:
            return self._mapping(node, path) if isinstance(node, yaml.MappingNode) else self._sequence(node, path)
        finally:
            self.open.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        self._require_distinct_keys(node, path)
        self.loader.flatten_mapping(node)  # `<<: *anchor`
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            here = (*path, str(key_node.value))
            self.document.marks[here] = self._mark(key_node)
            result[str(key_node.value)] = self.value(value_node, here)
        return result

    def _require_distinct_keys(self, node: yaml.MappingNode, path: KeyPath) -> None:
        seen: set[str] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise UsageError(f"{self._mark(key_node)}: a key is a list or a mapping; write keys as plain words")
            if key_node.value in seen and key_node.tag != "tag:yaml.org,2002:merge":
                raise UsageError(f"{self._mark(key_node)}: {dotted((*path, key_node.value))} is given twice")
            seen.add(key_node.value)

    def _sequence(self, node: yaml.Node, path: KeyPath) -> list[Any]:
        return list(self._items(node, path))

    def _items(self, node: yaml.Node, path: KeyPath) -> Iterator[Any]:
        for index, item in enumerate(node.value):
            here = (*path, index)
            self.document.marks[here] = self._mark(item)
            yield self.value(item, here)

    def _mark(self, node: yaml.Node) -> str:
        return f"{self.document.source}:{node.start_mark.line + 1}"
