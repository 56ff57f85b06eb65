"""One request to the endpoint, with nothing but the standard library."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage
from typing import IO, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from nemo_evaluator.direct.environment import LOOPBACK

TIMEOUT_SECONDS = 120.0
MAX_BODY = 1 << 20


@dataclass(frozen=True)
class Answer:
    status: int | None
    """None when no answer came; `text` then says why."""
    text: str
    may_be_loading: bool = False

    @property
    def document(self) -> dict[str, Any]:
        try:
            document = json.loads(self.text)
        except ValueError:
            return {}
        return document if isinstance(document, dict) else {}

    @property
    def message(self) -> str:
        """What the server says about its refusal, on one line."""
        error = self.document.get("error")
        said = error.get("message") if isinstance(error, dict) else error
        return " ".join(str(said or self.document.get("message") or self.text).split())[:300]

    @property
    def said(self) -> str:
        """Why there is no good answer."""
        return self.text if self.status is None else f"HTTP {self.status}: {self.message}"


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A token belongs to the host that was named; a POST would come back as a GET."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


class Endpoint:
    def __init__(self, url: str, token: str | None, timeout: float = TIMEOUT_SECONDS) -> None:
        parts = urlsplit(url)
        self.url = without_userinfo(url)
        self._headers = {"Content-Type": "application/json", "User-Agent": "nemotron-eval"}
        if authorization := f"Bearer {token}" if token is not None else basic_authorization(url):
            self._headers["Authorization"] = authorization
        self._timeout = timeout
        proxies = urllib.request.ProxyHandler({} if parts.hostname in LOOPBACK else None)
        self._opener = urllib.request.build_opener(proxies, NoRedirects)

    def models(self) -> Answer:
        parts = urlsplit(self.url)
        base = parts.path.rstrip("/")
        for ending in ("/chat/completions", "/completions"):
            if base.endswith(ending):
                base = base[: -len(ending)]
        return self._send(urlunsplit(parts._replace(path=base + "/models")), None)

    def ask(self, body: dict[str, Any]) -> Answer:
        return self._send(self.url, json.dumps(body).encode())

    def get(self) -> Answer:
        return self._send(self.url, None)

    def _send(self, url: str, body: bytes | None) -> Answer:
        request = urllib.request.Request(url, data=body, headers=self._headers)
        try:
            with self._opener.open(request, timeout=self._timeout) as reply:
                return Answer(reply.status, reply.read(MAX_BODY).decode("utf-8", "replace"))
        except urllib.error.HTTPError as error:
            with error:
                text = error.read(MAX_BODY).decode("utf-8", "replace")
            return Answer(error.code, text, may_be_loading=error.code in (502, 503, 504))
        except urllib.error.URLError as error:
            return Answer(None, in_words(error.reason), may_be_loading=isinstance(error.reason, ConnectionError))
        except (OSError, HTTPException) as error:
            return Answer(None, in_words(error), may_be_loading=isinstance(error, ConnectionError))
        except ValueError:  # whose message shows the token
            return Answer(None, "the token has characters that no HTTP header can carry")


def in_words(reason: object) -> str:
    """Without the number that the system has for it."""
    return getattr(reason, "strerror", None) or str(reason) or type(reason).__name__


def without_userinfo(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def basic_authorization(url: str) -> str | None:
    """What `user:password@` in a URL stands for."""
    userinfo, at, _ = urlsplit(url).netloc.rpartition("@")
    return "Basic " + base64.b64encode(unquote(userinfo).encode()).decode() if at else None
