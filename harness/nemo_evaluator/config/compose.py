"""One config out of several files: `defaults:` names what a file builds on.

defaults:
  - _base_: common        # a whole config to inherit from
  - services/local_vllm   # a fragment: the file's content goes under `services`
  - _self_                # where this file's own keys come in; last unless said otherwise
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nemo_evaluator.config.document import Document, merge, read
from nemo_evaluator.config.keypath import kind_of
from nemo_evaluator.config.references import resolve_own
from nemo_evaluator.errors import UsageError

GROUP_KEYS = {"clusters": "cluster"}
"""Folders of fragments whose top-level key is spelt otherwise."""


def compose(path: Path, environ: Mapping[str, str]) -> Document:
    """Everything merged and `${.a.b}` resolved; environment references are still as written."""
    library = [path.parent / "conf"]
    if home := environ.get("HOME"):
        library.append(Path(home) / ".config" / "nemo-evaluator" / "conf")
    document = resolve_own(_inherit(path, library, ()))
    return _without_user_variables(document)


def _inherit(path: Path, library: list[Path], chain: tuple[Path, ...]) -> Document:
    """The file and, recursively, all that its `defaults` name, merged in their order."""
    if path.resolve() in (opened.resolve() for opened in chain):
        raise UsageError(f"configs inherit in a circle: {' -> '.join(str(file) for file in (*chain, path))}")
    own = read(path, str(path))
    if not isinstance(own.data, dict):
        raise UsageError(f"the config {path} is {kind_of(own.data)}; a mapping of keys is expected")
    merged = Document({}, source=own.source)
    for entry in _entries(own):
        merged = merge(merged, _part(entry, own, path, library, (*chain, path)))
    merged.source = own.source
    return merged


def _entries(own: Document) -> list[Any]:
    """What `defaults` lists; it is taken out of the file's own keys."""
    if "_base_" in own.data:
        raise UsageError(f"{own.origin(('_base_',))}: _base_ belongs in the list `defaults:`, as `- _base_: NAME`")
    entries = own.data.pop("defaults", None) or []
    if not isinstance(entries, list):
        raise UsageError(f"{own.origin(('defaults',))}: defaults is {kind_of(entries)}; a list is expected")
    return entries if "_self_" in entries else [*entries, "_self_"]


def _part(entry: Any, own: Document, path: Path, library: list[Path], chain: tuple[Path, ...]) -> Document:
    origin = own.origin(("defaults",))
    match entry:
        case "_self_":
            return own
        case {"_base_": str(name), **others} if not others:
            return _inherit(_find(name, [path.parent, *library], origin), library, chain)
        case str(name) if "/" in name.strip("/"):
            return _fragment(name, _find(name, library, origin))
    raise UsageError(
        f"{origin}: defaults holds {entry!r}; an entry is a fragment `group/name`, `_base_: NAME` or `_self_`"
    )


def _fragment(name: str, path: Path) -> Document:
    group = name.split("/")[0]
    key = GROUP_KEYS.get(group, group)
    content = read(path, str(path))
    if isinstance(content.data, dict) and "defaults" in content.data:
        raise UsageError(f"{content.origin(('defaults',))}: a fragment cannot have defaults; list them in the config")
    return Document({key: content.data}, {(key, *inner): mark for inner, mark in content.marks.items()}, content.source)


def _find(name: str, folders: list[Path], origin: str) -> Path:
    candidates = [folder / f"{name}{suffix}" for folder in folders for suffix in ("", ".yaml", ".yml")]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    searched = ", ".join(str(folder) for folder in folders)
    raise UsageError(f"{origin}: no file {name}, {name}.yaml or {name}.yml in {searched}")


def _without_user_variables(document: Document) -> Document:
    """Top-level keys that start with an underscore exist to be referred to."""
    kept = {key: value for key, value in document.data.items() if not key.startswith("_")}
    return Document(kept, document.marks, document.source)


def prune_nulls(document: Document) -> Document:
    """A key that is null is a key that is not set, except in mappings whose content is handed on as it is."""
    return Document(_pruned(document.data), document.marks, document.source)


HANDED_ON = frozenset({"params", "config", "extra_body"})


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: item if key in HANDED_ON else _pruned(item) for key, item in value.items() if item is not None}
    return [_pruned(item) for item in value] if isinstance(value, list) else value
