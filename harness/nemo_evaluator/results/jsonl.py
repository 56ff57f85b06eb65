"""Rows as lines of JSON."""

from typing import Any

import orjson

_OPTIONS = orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
_INT64 = range(-(2**63), 2**64)


def dump_line(row: dict[str, Any]) -> bytes:
    """One line, whatever a user's metadata holds: what JSON has no form for is written as text."""
    try:
        return orjson.dumps(row, default=str, option=_OPTIONS)
    except (TypeError, ValueError):
        return orjson.dumps(_plain(row), default=str, option=_OPTIONS)


def parse_line(line: bytes) -> dict[str, Any]:
    """The row, or {} for a line that a crash tore."""
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return row if isinstance(row, dict) else {}


def _plain(value: Any) -> Any:
    """Without lone surrogates and integers beyond 64 bits, which orjson refuses."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, int) and value not in _INT64:
        return str(value)
    return value
