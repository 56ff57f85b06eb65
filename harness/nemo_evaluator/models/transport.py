"""One exchange over HTTP: bytes out, bytes back, each of the four time limits kept apart. aiohttp underneath."""

import asyncio
import io
import os
import socket
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TypeAlias

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from nemo_evaluator.errors import UsageError
from nemo_evaluator.models.deadlines import Deadlines
from nemo_evaluator.models.network import proxy_for, raise_open_files, tls_context
from nemo_evaluator.models.retry import AttemptFailed
from nemo_evaluator.models.wire import Wire

READ_BUFFER_BYTES = 1 << 20
"""aiohttp's 64 kB makes a 5 MB answer stop and start eighty times."""
LARGE_BODY_BYTES = 1 << 20
NO_LIMIT: AbstractContextManager[None] = nullcontext()

Exchanged: TypeAlias = tuple[int, Mapping[str, str], bytes]


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds, for each attempt on its own; the clock starts when the request is sent, never while it queues."""

    connect: float | None = 30.0
    first_byte: float | None = None
    """Until the reply begins. A server that does not stream thinks before it, so only `total` bounds it by default."""
    idle: float | None = 60.0
    """Between two pieces of a reply that has begun."""
    total: float | None = None
    """None takes the client's `timeout`."""

    def __post_init__(self) -> None:
        for name in ("connect", "first_byte", "idle", "total"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"The timeout {name}={value!r} must be more than 0 seconds, or None for no limit.")

    def with_total(self, seconds: float) -> "Timeouts":
        return self if self.total is not None else replace(self, total=seconds)


class StaleConnection(AttemptFailed):
    """A kept-alive socket that the server had closed before the request reached it: nobody has worked on that."""


class Exchange:
    """How far the exchange of a task has come."""

    __slots__ = ("has_begun", "is_fresh")

    def __init__(self) -> None:
        self.is_fresh = False
        """It had to open a connection of its own."""
        self.has_begun = False
        """The reply has."""


_current: ContextVar[Exchange] = ContextVar("current_exchange")


class Transport:
    """A session of one event loop, opened by the first request in it."""

    def __init__(
        self,
        headers: Mapping[str, str],
        timeouts: Timeouts,
        ca_bundle: str | None,
        environ: Mapping[str, str],
    ) -> None:
        self._headers = headers
        self._timeouts = timeouts
        self._ca_bundle = ca_bundle
        self._environ = environ
        self._proxies: dict[str, str | None] = {}
        self._limits = aiohttp.ClientTimeout(
            total=None, connect=timeouts.connect, sock_connect=timeouts.connect, sock_read=timeouts.first_byte
        )
        self._connector: aiohttp.TCPConnector | None = None
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wires: dict[tuple[str, str], Wire] = {}
        self._deadlines: Deadlines | None = None
        self.connections_opened = 0

    def open(self, connections: int, url: str) -> int:
        """Makes the pool for this event loop; returns how many connections it really holds."""
        room = raise_open_files(connections)
        self._connector = aiohttp.TCPConnector(
            limit=room,
            ssl=tls_context(self._ca_bundle, self._environ) if url.startswith("https:") else True,
            socket_factory=self._open_socket,
        )
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            headers=self._headers,
            timeout=self._limits,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER_BYTES,
        )
        self._wires = {}
        self._loop = asyncio.get_running_loop()
        self._deadlines = Deadlines(self._timeouts.total) if self._timeouts.total is not None else None
        return room

    @property
    def is_open(self) -> bool:
        return self._loop is asyncio.get_running_loop()

    async def close(self) -> None:
        session, self._session, self._loop = self._session, None, None
        if self._deadlines is not None:
            self._deadlines.close()
        if session is not None:
            await session.close()

    async def exchange(self, method: str, url: str, body: bytes | None = None) -> Exchanged:
        current = Exchange()
        _current.set(current)
        try:
            with self._deadlines.begin() if self._deadlines is not None else NO_LIMIT:
                if proxy := self._proxy(url):
                    return await self._by_proxy(method, url, body, proxy, current)
                return await (self._wires.get((method, url)) or self._wire(method, url)).exchange(body, current)
        except (TimeoutError, aiohttp.ClientError, HttpProcessingError, OSError) as error:
            raise self._failure(error, current) from error

    def _proxy(self, url: str) -> str | None:
        if url not in self._proxies:
            self._proxies[url] = proxy_for(url, self._environ)
        return self._proxies[url]

    def _wire(self, method: str, url: str) -> Wire:
        assert self._connector is not None
        idle = self._timeouts.idle
        wire = Wire(self._connector, method, URL(url), self._headers, self._limits, idle, READ_BUFFER_BYTES)
        return self._wires.setdefault((method, url), wire)

    async def _by_proxy(self, method: str, url: str, body: bytes | None, proxy: str, current: Exchange) -> Exchanged:
        """The long way, through a session: it knows how to speak to proxies."""
        assert self._session is not None
        data = io.BytesIO(body) if body is not None and len(body) > LARGE_BODY_BYTES else body
        async with self._session.request(method, URL(url), data=data, allow_redirects=False, proxy=proxy) as reply:
            current.has_begun = True
            if reply.connection is not None and reply.connection.protocol is not None:
                reply.connection.protocol.read_timeout = self._timeouts.idle
                reply.connection.protocol.start_timeout()
            return reply.status, reply.headers, await reply.read()

    def _open_socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        """Runs in the task (or a child of it) whose request found no idle connection; no other public hook does."""
        _current.get().is_fresh = True
        self.connections_opened += 1
        family, kind, protocol, _, _ = address
        return socket.socket(family=family, type=kind, proto=protocol)

    def _failure(self, error: Exception, current: Exchange) -> AttemptFailed:
        if (nobody := _nobody_reached(error)) is not None:
            return nobody
        if isinstance(error, TimeoutError):
            is_unreachable = isinstance(error, aiohttp.ConnectionTimeoutError)
            said = self._which_timeout(error, current)
            return AttemptFailed("timeout", said, is_transient=True, is_unreachable=is_unreachable)
        if isinstance(error, HttpProcessingError):
            return AttemptFailed("bad_reply", f"the reply is not HTTP ({error.message})", is_transient=True)
        if current.has_begun:
            return AttemptFailed(
                "connection", f"the connection broke in the middle of a reply ({error})", is_transient=True
            )
        if not current.is_fresh:
            return StaleConnection("connection", "the server closed an idle connection", is_transient=True)
        return AttemptFailed(
            "connection", f"the server closed the connection without a reply ({error})", is_transient=True
        )

    def _which_timeout(self, error: Exception, current: Exchange) -> str:
        limits = self._timeouts
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return f"no connection within {limits.connect or limits.total:g} s"
        if isinstance(error, aiohttp.SocketTimeoutError):
            if not current.has_begun:
                return f"the reply did not begin within {limits.first_byte:g} s"
            return f"the reply stopped in the middle for {limits.idle:g} s"
        return f"no complete reply within {limits.total:g} s"


def _nobody_reached(error: Exception) -> AttemptFailed | None:
    """The failure of a request for which there was no connection."""
    is_transient = False
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        hint = "name the authority's bundle in ca_bundle or SSL_CERT_FILE"
        said = f"certificate not trusted: {error.certificate_error}; {hint}"
    elif isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
        said = f"not a URL that can be asked: {error}"
    elif isinstance(error, aiohttp.ClientHttpProxyError):
        said = f"the proxy refused: HTTP {error.status} {error.message}"
    elif isinstance(error, aiohttp.ClientConnectorError):
        number = error.errno or 0  # below 0 for a name that nobody knows
        reason = os.strerror(number) if number > 0 else error.strerror or str(error)
        said, is_transient = f"cannot connect to {error.host}:{error.port}: {reason}", True
    else:
        return None
    return AttemptFailed("connection", said, is_transient=is_transient, is_unreachable=True)
