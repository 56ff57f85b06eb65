"""Rows as lines of JSON."""

from typing import Any

import orjson

_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
_INT64 = range(-(2**63), 2**64)
_DEEPEST = 100
"""Levels of nesting that are kept; orjson takes 254, and a value that holds itself has no end."""


def dump_line(row: dict[str, Any]) -> bytes:
    """One line, whatever a user's metadata holds: what JSON has no form for is written as text."""
    return _dumped(row, _OPTIONS)


def dump_indented(value: Any) -> bytes:
    """For files that people read too. NaN and infinity are no JSON: they become null."""
    return _dumped(value, _OPTIONS | orjson.OPT_INDENT_2)


def parse_line(line: bytes) -> dict[str, Any]:
    """The row, or {} for a line that a crash tore."""
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return row if isinstance(row, dict) else {}


def as_text(value: Any) -> str:
    """`str` of anything, also of what fails to tell."""
    try:
        return str(value).encode("utf-8", "replace").decode()
    except Exception:  # a user's `__str__`
        return f"<{type(value).__name__}>"


def _dumped(value: Any, options: int) -> bytes:
    try:
        return orjson.dumps(value, default=as_text, option=options)
    except (TypeError, ValueError):
        return orjson.dumps(_plain(value, 0), option=options)


def _plain(value: Any, depth: int) -> Any:
    """Without what orjson refuses: lone surrogates, integers beyond 64 bits, odd keys, endless nesting."""
    if isinstance(value, dict | list | tuple) and depth < _DEEPEST:
        if isinstance(value, dict):
            return {_plain_key(key): _plain(item, depth + 1) for key, item in value.items()}
        return [_plain(item, depth + 1) for item in value]
    if value is None or isinstance(value, bool | float) or (isinstance(value, int) and value in _INT64):
        return value
    return as_text(value)


def _plain_key(key: Any) -> Any:
    return key if key is None or isinstance(key, bool | float) or (type(key) is int and key in _INT64) else as_text(key)
