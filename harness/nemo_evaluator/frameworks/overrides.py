"""`--overrides a.b=1,c.d=[2,3]`: comma-separated, each value YAML. Pure."""

from collections.abc import Iterator
from typing import Any

import yaml

from nemo_evaluator.errors import UsageError

OPENING, CLOSING, QUOTES = "[{(", "]})", "\"'"


def parse_overrides(text: str) -> dict[str, Any]:
    """Nested mappings. A comma or `=` inside brackets or quotes belongs to the value. Raises UsageError."""
    result: dict[str, Any] = {}
    for part in split_outside(text):
        key, separator, value = part.partition("=")
        names = key.strip().split(".")
        if not separator or not all(names):
            raise UsageError(
                f"--overrides has {part.strip()!r}, which is not KEY=VALUE: write config.params.NAME=VALUE."
            )
        _set(result, names, _value(key, value))
    return result


def split_outside(text: str) -> Iterator[str]:
    """At the commas that stand in no bracket and no quotes. A quote opens only at the start of a word: don't."""
    part, depth, quote = "", 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in QUOTES and (not part or part[-1] in "=,:[{( "):
            quote = character
        elif character in OPENING:
            depth += 1
        elif character in CLOSING:
            depth -= 1
        elif character == "," and depth <= 0:
            if part.strip():
                yield part
            part = ""
            continue
        part += character
    if quote or depth > 0:
        raise UsageError(f"--overrides ends inside {quote or 'a bracket'}: {part.strip()[:80]!r}. Close it.")
    if part.strip():
        yield part


def _value(key: str, text: str) -> Any:
    """What YAML takes for something else than was written, such as `a: b`, stays text."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    is_accidental = isinstance(value, dict | list) and not text.lstrip().startswith(("{", "["))
    if is_accidental:
        return text
    return _number(value) if isinstance(value, str) else value


def _number(text: str) -> Any:
    """1e-07 is text to YAML 1.1, which wants a dot in it."""
    if not text[:1].isdigit() and text[:1] not in "+-.":
        return text
    try:
        return float(text)
    except ValueError:
        return text


def _set(target: dict[str, Any], names: list[str], value: Any) -> None:
    for name in names[:-1]:
        inner = target.setdefault(name, {})
        if not isinstance(inner, dict):
            inner = target[name] = {}
        target = inner
    target[names[-1]] = value
