"""Keeping keys and tokens out of whatever is printed or written."""

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

from pydantic import BaseModel, SecretStr

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
_USERINFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_QUERY = re.compile(r"(?P<start>[?&](?P<key>[^=&?\s]+)=)(?P<value>[^&\s]+)")


def is_secret_key(key: str) -> bool:
    """`api_key`, `X-Api-Key`, `hfToken`, `Authorization`; not `max_tokens` or `tokenizer`."""
    words = [word.lower() for word in _WORD.findall(key)]
    return any(word in _SECRET_WORDS for word in words) or any(
        pair in _SECRET_PAIRS for pair in itertools.pairwise(words)
    )


def masked(config: Any, *, is_secret: bool = False) -> Any:
    """A copy to show or store. `${VAR}` stays as written: it names a secret and is none."""
    if isinstance(config, dict):
        return {key: masked(item, is_secret=is_secret or is_secret_key(str(key))) for key, item in config.items()}
    if isinstance(config, list):
        return [masked(item, is_secret=is_secret) for item in config]
    if is_secret and config not in (None, ""):
        return _masked_secret(str(config))
    return masked_url(config) if isinstance(config, str) else config


def masked_url(text: str) -> str:
    def mask(match: re.Match[str]) -> str:
        return match["start"] + (_masked_secret(match["value"]) if is_secret_key(match["key"]) else match["value"])

    return _QUERY.sub(mask, _USERINFO.sub(MASK, text))


def _masked_secret(value: str) -> str:
    if _REFERENCE.sub("", value).strip().lower() in _SCHEMES:
        return value
    if match := _REFERENCE_WITH_DEFAULT.fullmatch(value):
        return f"${{{match[1]}:-{MASK}}}"
    return MASK


def secret_values(config: BaseModel) -> list[str]:
    """All that must appear nowhere: keys, tokens in headers, passwords in URLs."""
    found = {value for value in _secrets_in(config.model_dump()) if len(value) >= SHORTEST_SECRET}
    return sorted(found, key=len, reverse=True)


def _secrets_in(value: Any, is_secret: bool = False) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _secrets_in(item, is_secret or is_secret_key(str(key)))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _secrets_in(item, is_secret)
    elif isinstance(value, str) and is_secret:
        yield value
        yield value.split(" ")[-1]  # the token of `Bearer TOKEN`
    elif isinstance(value, str):
        for userinfo in _USERINFO.findall(value):
            yield from (userinfo, userinfo.split(":", 1)[-1])
        yield from (match["value"] for match in _QUERY.finditer(value) if is_secret_key(match["key"]))


def redact(text: str, secrets: Iterable[str]) -> str:
    """Mask every secret, also as it looks inside a URL; longer ones first, lest one that holds another survive."""
    forms = {form for secret in secrets if len(secret) >= SHORTEST_SECRET for form in _forms(secret)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, MASK)
    return text


def _forms(secret: str) -> tuple[str, ...]:
    return secret, quote(secret, safe=""), quote(secret), quote_plus(secret)
