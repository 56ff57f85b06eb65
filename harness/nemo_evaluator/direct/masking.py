"""Known secret values do not reach a file: they are masked in the stream, however it is cut into reads."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Iterable
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit, urlunsplit

MASK = b"***"
SHORTEST_SECRET = 5
"""Masking a shorter value would blot out half of the log and protect nothing."""


class Masker:
    """`feed` gives back what can be judged already; the last bytes wait while they might begin a secret."""

    def __init__(self, values: Iterable[str]) -> None:
        self._needles = sorted({form for value in values for form in _forms(value)}, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, self._needles))) if self._needles else None
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        if self._pattern is None:
            return data
        pending = self._held + data
        keep = self._beginning_at_the_end(pending)
        done, rest = [], 0
        for match in self._pattern.finditer(pending):
            if match.start() >= len(pending) - keep:
                break
            done += [pending[rest : match.start()], MASK]
            rest = match.end()
        end = max(rest, len(pending) - keep)
        self._held = pending[end:]
        return b"".join([*done, pending[rest:end]])

    def flush(self) -> bytes:
        """What was held back, when the stream has ended."""
        held, self._held = self._held, b""
        return self.mask(held)

    def mask(self, data: bytes) -> bytes:
        return self._pattern.sub(MASK, data) if self._pattern else data

    def mask_text(self, text: str) -> str:
        return self.mask(text.encode("utf-8", "backslashreplace")).decode("utf-8", "replace")

    def mask_document(self, value: Any) -> Any:
        """Every text of a JSON document."""
        if isinstance(value, dict):
            return {self.mask_text(key): self.mask_document(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.mask_document(item) for item in value]
        return self.mask_text(value) if isinstance(value, str) else value

    def _beginning_at_the_end(self, data: bytes) -> int:
        """Length of the longest end of `data` that is a true beginning of a secret."""
        longest = min(len(data), max(map(len, self._needles)) - 1)
        for size in range(longest, 0, -1):
            tail = data[len(data) - size :]
            if any(needle.startswith(tail) and len(needle) > size for needle in self._needles):
                return size
        return 0


def _forms(value: str) -> set[bytes]:
    """The ways in which programs print a value: as it is, in a URL, in JSON, in a Python repr."""
    raw = os.fsencode(value)
    percent = {quote(raw), quote(raw, safe=""), quote_plus(raw)}
    lower = {re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), form) for form in percent}
    texts = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
    return {os.fsencode(text) for text in texts | percent | lower if len(text) >= SHORTEST_SECRET}


def secrets_of_url(url: str) -> list[str]:
    """The parts of a URL that nobody should read; none for a plain address."""
    if not is_secret_url(url):
        return []
    parts = urlsplit(url)
    userinfo = parts.netloc.rpartition("@")[0]
    words = [userinfo, unquote(userinfo), *unquote(userinfo).split(":"), parts.query]
    return [url, *filter(None, words), *(value for _, value in parse_qsl(parts.query))]


def is_secret_url(url: str) -> bool:
    parts = urlsplit(url)
    return "@" in parts.netloc or bool(parts.query)


def redact_url(url: str) -> str:
    """Scheme, host and path are for everybody; userinfo, query and fragment are for nobody."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    userinfo = "***@" if "@" in parts.netloc else ""
    return urlunsplit((parts.scheme, userinfo + host, parts.path, "***" if parts.query else "", ""))
