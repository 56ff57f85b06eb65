"""Keeping keys and tokens out of whatever is printed or written."""

import hashlib
import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "***"

SHORTEST_SECRET = 4
"""A shorter one would mask pieces of ordinary words, and protects nothing."""

_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_SECRET_WORDS = frozenset(
    {"apikey", "token", "password", "passwd", "secret", "authorization", "credential", "credentials", "cookie"}
)
_SECRET_PAIRS = frozenset({("api", "key"), ("access", "key"), ("private", "key"), ("subscription", "key")})
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::-)?\}")
_REFERENCE_WITH_DEFAULT = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*):-.+\}")
_SCHEMES = frozenset({"", "bearer", "basic", "token"})
USERINFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
QUERY = re.compile(r"(?P<start>[?&](?P<key>[^=&?\s]+)=)(?P<value>[^&\s]+)")


def is_secret_key(key: str) -> bool:
    """`api_key`, `X-Api-Key`, `hfToken`, `Authorization`; not `max_tokens` or `tokenizer`."""
    words = [word.lower() for word in _WORD.findall(key)]
    return any(word in _SECRET_WORDS for word in words) or any(
        pair in _SECRET_PAIRS for pair in itertools.pairwise(words)
    )


def masked(config: Any, *, is_secret: bool = False) -> Any:
    """A copy to show or store. `${VAR}` stays as written: it names a secret and is none."""
    if isinstance(config, Mapping):
        return {key: masked(item, is_secret=is_secret or is_secret_key(str(key))) for key, item in config.items()}
    if isinstance(config, list | tuple | set | frozenset):
        return [masked(item, is_secret=is_secret) for item in config]
    if (inner := _fields_of(config)) is not None:
        return masked(inner, is_secret=is_secret)
    if is_secret and config not in (None, ""):
        return _masked_secret(str(config))
    return masked_url(config) if isinstance(config, str) else config


def told_apart(value: Any, *, is_secret: bool = False) -> Any:
    """A copy of plain data in which a secret is masked, but not so that it equals another: for fingerprints.

    Eight hexadecimal digits of a hash give a key away to nobody. Numbers stay: `stop_token_ids` are none."""
    if isinstance(value, dict):
        return {key: told_apart(item, is_secret=is_secret or is_secret_key(str(key))) for key, item in value.items()}
    if isinstance(value, list):
        return [told_apart(item, is_secret=is_secret) for item in value]
    if is_secret and isinstance(value, str) and value:
        return f"{MASK}{hashlib.sha256(value.encode('utf-8', 'replace')).hexdigest()[:8]}"
    return value


def masked_url(text: str) -> str:
    def mask(match: re.Match[str]) -> str:
        return match["start"] + (_masked_secret(match["value"]) if is_secret_key(match["key"]) else match["value"])

    return QUERY.sub(mask, USERINFO.sub(MASK, text))


def _fields_of(value: Any) -> Mapping[str, Any] | None:
    """Of an object whose text would show them all: a dataclass, or a model of pydantic's."""
    if isinstance(value, type):
        return None
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return value.model_dump() if hasattr(value, "model_dump") else None


def _masked_secret(value: str) -> str:
    if _REFERENCE.sub("", value).strip().lower() in _SCHEMES:
        return value
    if match := _REFERENCE_WITH_DEFAULT.fullmatch(value):
        return f"${{{match[1]}:-{MASK}}}"
    return MASK


def redact(text: str, secrets: Iterable[str]) -> str:
    """Mask every secret, also as it looks inside a URL; longer ones first, lest one that holds another survive."""
    forms = {form for secret in secrets if len(secret) >= SHORTEST_SECRET for form in _forms(secret)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, MASK)
    return text


def _forms(secret: str) -> tuple[str, ...]:
    return secret, quote(secret, safe=""), quote(secret), quote_plus(secret)
