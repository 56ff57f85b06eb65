"""One request to an endpoint or to the hub, and what came of it as a value."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx

from nemotron.hub import Item
from nemotron.images.registry import is_loopback
from nemotron.secrets import fits_a_header, redact, redact_url

COMPLETIONS = re.compile(r"(/chat)?/completions/?$")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int | None
    """None when none came; `text` then says why."""
    text: str
    content: Any = None
    """What JSON there was."""

    @property
    def said(self) -> str:
        """One line, whatever a server sends."""
        detail = self.content.get("error", self.content) if isinstance(self.content, dict) else None
        message = detail.get("message") or detail.get("detail") if isinstance(detail, dict) else detail
        line = " ".join(str(message or self.text).split())[:200]
        return line if self.status is None else f"HTTP {self.status}{f', {line}' if line else ''}"


class Endpoint:
    """By its full URL, the token apart; neither shows in what is answered."""

    def __init__(self, url: str, token: str | None, timeout: float = 60.0) -> None:
        parts = urlsplit(url)
        self.shown = redact_url(url)
        self._url = httpx.URL(url).copy_with(userinfo=b"") if token else httpx.URL(url)  # a token counts for more
        self._secrets = [value for value in (token, parts.username, parts.password, parts.query) if value]
        self._client = client(self._url, token, timeout)

    def models(self) -> Answer:
        path = COMPLETIONS.sub("/models", self._url.path)
        return answer_of(self._client, "GET", self._url.copy_with(path=path), self._secrets)

    def ask(self, body: Mapping[str, Any]) -> Answer:
        return answer_of(self._client, "POST", self._url, self._secrets, dict(body))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._client.close()


def ask_hub(hub: str, item: Item, token: str | None, check: str | None = None) -> Answer:
    """What the hub says about a dataset or model at its revision, or about a `check` of it."""
    asked = check or (f"revision/{quote(item.revision, safe='')}" if item.revision else "")
    path = "/".join(filter(None, ("api", item.kind, quote(item.id), asked)))
    url = httpx.URL(f"{hub.rstrip('/')}/{path}")
    if token and not fits_a_header(token):
        return Answer(None, "its token has characters that no HTTP header can carry")
    with client(url, token, timeout=10) as asking:
        return answer_of(asking, "GET", url, [token] if token else [])


def client(url: httpx.URL, token: str | None, timeout: float) -> httpx.Client:
    """Follows no redirect, because a token belongs to the host that was named; a proxy is not for this machine."""
    return httpx.Client(
        headers={"Authorization": f"Bearer {token}"} if token else {},
        timeout=httpx.Timeout(timeout, connect=10),
        trust_env=not is_loopback(url.netloc.decode()),
    )


def answer_of(
    client: httpx.Client, method: str, url: httpx.URL, secrets: Iterable[str], body: dict[str, Any] | None = None
) -> Answer:
    try:
        response = client.request(method, url, json=body)
    except httpx.HTTPError as error:
        return Answer(None, redact(str(error) or type(error).__name__, secrets))
    text = redact(response.text, secrets)
    try:
        return Answer(response.status_code, text, json.loads(text))
    except ValueError:
        return Answer(response.status_code, text)
