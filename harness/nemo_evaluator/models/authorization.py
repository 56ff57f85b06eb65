"""Who we are to the endpoint, and which words of that nobody may read."""

import base64
import re
from collections.abc import Mapping
from urllib.parse import unquote, urlunsplit

from nemo_evaluator.errors import UsageError
from nemo_evaluator.models.payload import split_url

KEY_VARIABLES = ("NEMO_API_KEY", "NVIDIA_API_KEY")
SECRET_HEADER = re.compile(r"key|token|secret|auth|cookie", re.IGNORECASE)


def split_credentials(url: str) -> tuple[str, str | None]:
    """`http://user:password@host` -> the URL without them, and `user:password`."""
    parts = split_url(url)
    if parts.username is None:
        return url, None
    clean = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return clean, f"{unquote(parts.username)}:{unquote(parts.password or '')}"


def choose_authorization(api_key: str | None, credentials: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    if credentials is not None and api_key is None:
        return {"Authorization": "Basic " + base64.b64encode(credentials.encode()).decode()}
    if api_key is None:
        api_key = next((environ[name] for name in KEY_VARIABLES if environ.get(name)), None)
    if not api_key:
        return {}
    key = api_key.strip()
    if not key.isascii() or not key.isprintable():
        raise UsageError("The API key holds characters that no header can carry. Check the variable it comes from.")
    return {"Authorization": f"Bearer {key}"}


def secrets_of(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The values that no message may show: whole, and without the scheme before them."""
    values = [value for name, value in headers.items() if SECRET_HEADER.search(name)]
    return tuple(dict.fromkeys([*values, *(value.rpartition(" ")[2] for value in values)]))
