"""Where a value sits in a config: `benchmarks[0].solver.generation` is ("benchmarks", 0, "solver", "generation")."""

import difflib
import re
from collections.abc import Iterable
from typing import Any

KeyPath = tuple[str | int, ...]

_SEGMENT = re.compile(
    r"""(?:^|\.)(?P<bare>[^.\[\]"']+)         # a key, or an index written as `.0`
      | (?:^|\.)(?P<quote>["'])(?P<quoted>.*?)(?P=quote)
      | \[(?P<index>\d+)\]
      | \[(?P<bracket>["'])(?P<key>.*?)(?P=bracket)\]
    """,
    re.VERBOSE | re.DOTALL,
)
_PLAIN_KEY = re.compile(r"[^.\[\]\"'=]+")


def parse_path(text: str) -> KeyPath | None:
    """None when `text` is no path. A bare number stays text until it meets a list, see `step`."""
    parts: list[str | int] = []
    position = len(text) if text.startswith(".") else 0
    while position < len(text):
        match = _SEGMENT.match(text, position)
        if match is None:
            return None
        index = match["index"]
        parts.append(int(index) if index is not None else match["bare"] or match["quoted"] or match["key"] or "")
        position = match.end()
    return tuple(parts) or None


def as_index(part: str | int) -> int | None:
    """The list index that `part` means, if it means one."""
    if isinstance(part, int):
        return part
    return int(part) if part.isascii() and part.isdigit() else None


def dotted(path: KeyPath) -> str:
    """As a user would write it; `parse_path` reads it back."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + (part if _PLAIN_KEY.fullmatch(part) else f'"{part}"')
    return text


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name as a clause to append, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def kind_of(value: Any) -> str:
    """What a value is, in a user's words."""
    match value:
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
    return "null"
