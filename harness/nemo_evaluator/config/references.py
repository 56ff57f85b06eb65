"""`${.key.path}` of the config itself, and `${VAR}` and `${VAR:-default}` of the environment."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nemo_evaluator.config.document import Document
from nemo_evaluator.config.keypath import KeyPath, as_index, did_you_mean, dotted, kind_of, parse_path
from nemo_evaluator.errors import UsageError

_VARIABLE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)
_ESCAPED = re.compile(r"\$\$\{")


def literal(text: str) -> str:
    """`text` such that no expansion changes it."""
    return text.replace("${", "$${")


def map_strings(value: Any, convert: Callable[[str, KeyPath], Any], path: KeyPath = ()) -> Any:
    """A copy of nested data with every string converted; keys stay as they are."""
    if isinstance(value, dict):
        return {key: map_strings(item, convert, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [map_strings(item, convert, (*path, index)) for index, item in enumerate(value)]
    return convert(value, path) if isinstance(value, str) else value


def resolve_own(document: Document) -> Document:
    """Replace `${.a.b}` by the value at a.b: with its type when it is the whole string, as text inside a longer one."""
    data = map_strings(document.data, lambda text, path: _resolved(text, path, document, ()))
    return Document(data, document.marks, document.source)


def _resolved(text: str, path: KeyPath, document: Document, chain: tuple[str, ...]) -> Any:
    values = [_piece_value(kind, body, path, document, chain) for kind, body in _pieces(text, path, document)]
    if len(values) == 1:
        return values[0]
    return "".join(_as_text(value, path, document) for value in values)


def _piece_value(kind: str, body: str, path: KeyPath, document: Document, chain: tuple[str, ...]) -> Any:
    """Text, escapes and environment references pass through as they were written."""
    if kind == "text":
        return body
    if not body.startswith("."):
        return "${" + body + "}"
    origin = document.origin(path)
    if body in chain:
        raise UsageError(f"{origin}: ${{{body}}} refers to itself: {' -> '.join((*chain, body))}")
    target_path, target = _look_up(body, document.data, origin)
    return map_strings(target, lambda text, _: _resolved(text, path, document, (*chain, body)), target_path)


def _look_up(body: str, data: Any, origin: str) -> tuple[KeyPath, Any]:
    path: KeyPath = ()
    for part in parse_path(body[1:]) or ("",):
        index = as_index(part)
        if isinstance(data, dict) and part in data:
            data = data[part]
        elif isinstance(data, list) and index is not None and index < len(data):
            data = data[index]
        else:
            hint = did_you_mean(str(part), data) if isinstance(data, dict) else ""
            raise UsageError(f"{origin}: ${{{body}}} refers to nothing: {dotted((*path, part))} is not set{hint}")
        path = (*path, part)
    return path, data


def _as_text(value: Any, path: KeyPath, document: Document) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise UsageError(
        f"{document.origin(path)}: {dotted(path)} puts {kind_of(value)} inside text; "
        "only text, numbers and true/false can stand there"
    )


def expand_environment(document: Document, environ: Mapping[str, str]) -> Document:
    """Fill in the environment, strictly: all variables that are not set are named in one error."""
    missing: list[str] = []

    def expand(text: str, path: KeyPath) -> str:
        return _expanded(text, path, document, environ, missing)

    data = map_strings(document.data, expand)
    if missing:
        raise UsageError("\n".join(missing))
    return Document(data, document.marks, document.source)


def _expanded(text: str, path: KeyPath, document: Document, environ: Mapping[str, str], missing: list[str]) -> str:
    origin = document.origin(path)
    result = ""
    for kind, body in _pieces(text, path, document):
        if kind == "text":
            result += _ESCAPED.sub("${", body)
            continue
        match = _VARIABLE.fullmatch(body)
        if match is None:
            raise UsageError(
                f"{origin}: {dotted(path)} holds ${{{body}}}, which is neither ${{VAR}} nor ${{VAR:-default}}; "
                "write $${ for the plain characters"
            )
        name, default = match["name"], match["default"]
        if default is not None:
            result += environ.get(name) or _expanded(default, path, document, environ, missing)
        elif name in environ:
            result += environ[name]
        else:
            missing.append(
                f"{origin}: {dotted(path)} needs the environment variable {name}, which is not set; "
                f"export {name}, or write ${{{name}:-default}}"
            )
    return result


def _pieces(text: str, path: KeyPath, document: Document) -> Iterator[tuple[str, str]]:
    """("text", as written) and ("reference", between the braces) in order; braces may nest in a default."""
    start = position = 0
    while (found := text.find("${", position)) >= 0:
        if found > 0 and text[found - 1] == "$":
            position = found + 2
            continue
        end = _closing_brace(text, found + 2)
        if end is None:
            raise UsageError(
                f"{document.origin(path)}: {dotted(path)} has ${{ without its }}; write $${{ for the plain characters"
            )
        if found > start:
            yield "text", text[start:found]
        yield "reference", text[found + 2 : end]
        start = position = end + 1
    if start < len(text) or not text:
        yield "text", text[start:]


def _closing_brace(text: str, position: int) -> int | None:
    depth = 1
    for index in range(position, len(text)):
        depth += (text[index] == "{") - (text[index] == "}")
        if depth == 0:
            return index
    return None
