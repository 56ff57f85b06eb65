"""Secrets go by name; their values are looked up when a job starts, and hidden wherever something is shown."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, urlsplit, urlunsplit

MASK = "***"
SHORTEST_SECRET = 5
"""A shorter value is in half of all words."""

_SECRET_NAME = re.compile(
    r"(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|APIKEY|_KEY|_KEY_ID|CREDENTIALS?|_JWT|_AUTH_SOCK)$", re.IGNORECASE
)
_HEADER = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_variable_name(text: str) -> bool:
    return _VARIABLE.fullmatch(text) is not None


def fits_a_header(token: str) -> bool:
    """Libraries raise about others, and show them."""
    return _HEADER.fullmatch(token) is not None


def is_secret_name(name: str) -> bool:
    """By the custom of naming them: HF_TOKEN, OPENAI_API_KEY, AWS_SECRET_ACCESS_KEY."""
    return _SECRET_NAME.search(name) is not None


def is_secret_url(text: str) -> bool:
    """Userinfo and queries of a URL carry credentials."""
    if "://" not in text:
        return False
    parts = urlsplit(text)
    return "@" in parts.netloc or bool(parts.query)


def is_secret(name: str, value: str) -> bool:
    return is_secret_name(name) or is_secret_url(value)


def values_of(names: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Those that are set; for the moment a job is started."""
    return {name: environ[name] for name in names if environ.get(name)}


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment for code that others wrote."""
    return {name: value for name, value in environ.items() if is_variable_name(name) and not is_secret(name, value)}


def redact_url(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    netloc = f"{MASK}@{host}" if "@" in parts.netloc else host
    return urlunsplit((parts.scheme, netloc, parts.path, MASK if parts.query else "", ""))


def redact(text: str, values: Iterable[str]) -> str:
    """`values` masked, also as URLs and Python spell them; longer ones first, as one may contain another."""
    for value in sorted({v for v in values if len(v) >= SHORTEST_SECRET}, key=len, reverse=True):
        for form in (value, quote(value, safe=""), quote(value), repr(value)[1:-1], repr(value.encode())[2:-1]):
            text = text.replace(form, MASK)
    return text
