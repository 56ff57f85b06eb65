"""How a registry is asked for permission: Basic, or a Bearer token bought at the realm that its refusal names."""

import base64
import re
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import httpx

from nemotron.errors import LauncherError
from nemotron.images.credentials import Credential

DEFAULT_TOKEN_SECONDS = 60
MARGIN_SECONDS = 10
"""A token this close to its end is not used any more."""
CLIENT_ID = "nemotron"

_SCHEME = re.compile(r"(?:^|,)\s*([A-Za-z]+)(?=\s+[A-Za-z_]+\s*=|\s*(?:,|$))")
_PARAMETER = re.compile(r'([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))')


class NotAuthorized(LauncherError):
    """A registry wants to know who asks, and did not take the answer."""


@dataclass(frozen=True, slots=True)
class Challenge:
    scheme: str
    """In lower case."""
    parameters: dict[str, str]


@dataclass(frozen=True, slots=True)
class Token:
    value: str = field(repr=False)
    expires: float
    """By the clock of `RegistryAuth`."""


class RegistryAuth(httpx.Auth):
    """The credential and the tokens of one repository on one host.

    They go there and to the realm it names, never to where a redirect leads: httpx drops the header of a request that
    is sent on to another host, and a refusal from there is not answered.
    """

    requires_response_body = False

    def __init__(
        self, credential: Credential | None, repository: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._credential, self._scope, self._clock = credential, f"repository:{repository}:pull", clock
        self._token: Token | None = None
        self._uses_basic = False

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if header := self._header():
            request.headers["Authorization"] = header
        response = yield request
        if response.status_code != 401 or response.url.netloc != request.url.netloc:
            return
        challenge = _strongest(challenges(response.headers.get_list("WWW-Authenticate")))
        if challenge.scheme == "bearer":
            answer = yield self._token_request(challenge, request.url)
            answer.read()
            self._token = self._token_of(answer)
        else:
            self._uses_basic = self._credential is not None
        if header := self._header():
            request.headers["Authorization"] = header
            yield request

    def _header(self) -> str | None:
        if self._token and self._token.expires > self._clock():
            return f"Bearer {self._token.value}"
        if self._uses_basic and self._credential:
            return _basic(self._credential)
        return None

    def _token_request(self, challenge: Challenge, asked: httpx.URL) -> httpx.Request:
        realm = _realm_of(challenge, asked)
        scope = challenge.parameters.get("scope", self._scope)
        values = {"service": challenge.parameters.get("service", ""), "scope": scope}
        if self._credential and self._credential.identity_token:
            values |= {"grant_type": "refresh_token", "client_id": CLIENT_ID}
            return httpx.Request("POST", realm, data=values | {"refresh_token": self._credential.identity_token})
        headers = {"Authorization": _basic(self._credential)} if self._credential else {}
        query = {name: value for name, value in values.items() if value}
        return httpx.Request("GET", realm.copy_merge_params(query), headers=headers)

    def _token_of(self, answer: httpx.Response) -> Token:
        """Registries call it `token`, OAuth2 calls it `access_token`."""
        host = answer.url.host
        if answer.status_code in (401, 403):
            raise NotAuthorized(
                f"{host} does not take the login ({answer.status_code}): log in anew, with docker login."
            )
        try:
            said: dict[str, Any] = answer.json() if answer.is_success else {}
            seconds = float(said.get("expires_in") or DEFAULT_TOKEN_SECONDS)
            value = said.get("token") or said["access_token"]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise NotAuthorized(f"{host} gives no token (status {answer.status_code}): try again later.") from None
        return Token(value, self._clock() + max(seconds - MARGIN_SECONDS, 1))


def challenges(headers: list[str]) -> list[Challenge]:
    """Of all WWW-Authenticate headers; one header may hold several, parameters come in any order."""
    found = []
    for header in headers:
        starts = list(_SCHEME.finditer(_without_quoted(header)))
        ends = [*(start.start() for start in starts[1:]), len(header)]
        for start, end in zip(starts, ends, strict=False):
            text = header[start.end() : end]
            parameters = {
                name.lower(): quoted.replace('\\"', '"') or plain for name, quoted, plain in _PARAMETER.findall(text)
            }
            found.append(Challenge(start[1].lower(), parameters))
    return found


def _without_quoted(header: str) -> str:
    """The header with the content of its quotes blanked, so that a comma in a scope starts nothing."""
    return re.sub(r'"(?:[^"\\]|\\.)*"', lambda match: '"' + "x" * (len(match[0]) - 2) + '"', header)


def _strongest(offered: list[Challenge]) -> Challenge:
    for scheme in "bearer", "basic":
        for challenge in offered:
            if challenge.scheme == scheme:
                return challenge
    named = ", ".join(challenge.scheme for challenge in offered) or "none"
    raise NotAuthorized(f"a registry wants a login of a kind that is not known ({named}; known are Bearer and Basic).")


def _realm_of(challenge: Challenge, asked: httpx.URL) -> httpx.URL:
    """Where to buy the token. A registry behind https may not send the password over plain http."""
    text = challenge.parameters.get("realm", "")
    try:
        realm = httpx.URL(text)
    except httpx.InvalidURL:
        realm = httpx.URL("")
    if realm.scheme not in ("http", "https") or not realm.host:
        raise NotAuthorized(f"{asked.host} names no place to get a token (realm {text!r}): ask who runs it.")
    if asked.scheme == "https" and realm.scheme != "https":
        raise NotAuthorized(f"{asked.host} wants the login sent to {realm.host} in plain text: ask who runs it.")
    return realm


def _basic(credential: Credential) -> str:
    pair = f"{credential.username}:{credential.password}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"
