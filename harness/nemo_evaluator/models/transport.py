"""One exchange over HTTP: bytes out, bytes back, each of the four time limits kept apart. aiohttp underneath."""

import asyncio
import io
import os
import socket
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TypeAlias

import aiohttp
from yarl import URL

from nemo_evaluator.errors import UsageError
from nemo_evaluator.models.network import proxy_for, raise_open_files, tls_context
from nemo_evaluator.models.retry import AttemptFailed

READ_BUFFER_BYTES = 1 << 20
"""aiohttp's 64 kB makes a 5 MB answer stop and start eighty times."""
LARGE_BODY_BYTES = 1 << 20

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


class Socket:
    """Whether the exchange of this task had to open a connection of its own."""

    __slots__ = ("is_fresh",)

    def __init__(self) -> None:
        self.is_fresh = False


_current: ContextVar[Socket] = ContextVar("current_exchange")


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
        self._limits = aiohttp.ClientTimeout(
            total=timeouts.total, connect=timeouts.connect, sock_connect=timeouts.connect, sock_read=timeouts.first_byte
        )
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._targets: dict[str, tuple[URL, str | None]] = {}
        self.connections_opened = 0

    def open(self, connections: int, url: str) -> int:
        """Makes the pool for this event loop; returns how many connections it really holds."""
        room = raise_open_files(connections)
        connector = aiohttp.TCPConnector(
            limit=room,
            ssl=tls_context(self._ca_bundle, self._environ) if url.startswith("https:") else True,
            socket_factory=self._open_socket,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            timeout=self._limits,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER_BYTES,
        )
        self._loop = asyncio.get_running_loop()
        return room

    @property
    def is_open(self) -> bool:
        return self._loop is asyncio.get_running_loop()

    async def close(self) -> None:
        session, self._session, self._loop = self._session, None, None
        if session is not None:
            await session.close()

    async def exchange(self, method: str, url: str, body: bytes | None = None) -> Exchanged:
        assert self._session is not None
        target, proxy = self._targets.get(url) or self._resolve(url)
        current = Socket()
        _current.set(current)
        reply: aiohttp.ClientResponse | None = None
        try:
            data = io.BytesIO(body) if body is not None and len(body) > LARGE_BODY_BYTES else body
            reply = await self._session.request(method, target, data=data, allow_redirects=False, proxy=proxy)
            if (connection := reply.connection) is not None:
                self._limit_idling(connection)
            return reply.status, reply.headers, await reply.read()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise self._failure(error, current, reply) from error
        except asyncio.CancelledError:
            if reply is not None:
                reply.close()
            raise

    def _resolve(self, url: str) -> tuple[URL, str | None]:
        self._targets[url] = URL(url), proxy_for(url, self._environ)
        return self._targets[url]

    def _limit_idling(self, connection: aiohttp.connector.Connection) -> None:
        """aiohttp knows one read timeout: it was the first byte's until now, and is the idle one for the rest."""
        if (protocol := connection.protocol) is not None:
            protocol.read_timeout = self._timeouts.idle
            protocol.start_timeout()

    def _open_socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        """Runs in the task (or a child of it) whose request found no idle connection; no other public hook does."""
        _current.get().is_fresh = True
        self.connections_opened += 1
        family, kind, protocol, _, _ = address
        return socket.socket(family=family, type=kind, proto=protocol)

    def _failure(self, error: Exception, current: Socket, reply: aiohttp.ClientResponse | None) -> AttemptFailed:
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            hint = "name the authority's bundle in ca_bundle or SSL_CERT_FILE"
            return AttemptFailed("connection", f"certificate not trusted: {error.certificate_error}; {hint}")
        if isinstance(error, TimeoutError):
            return AttemptFailed("timeout", self._which_timeout(error, reply), is_transient=True)
        if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
            return AttemptFailed("connection", f"not a URL that can be asked: {error}")
        if isinstance(error, aiohttp.ClientHttpProxyError):
            return AttemptFailed("connection", f"the proxy refused: HTTP {error.status} {error.message}")
        if reply is not None:
            return AttemptFailed(
                "connection", f"the connection broke in the middle of a reply ({error})", is_transient=True
            )
        if isinstance(error, aiohttp.ClientConnectorError):
            said = os.strerror(error.errno) if error.errno else str(error)
            return AttemptFailed(
                "connection", f"cannot connect to {error.host}:{error.port}: {said}", is_transient=True
            )
        if not current.is_fresh:
            return StaleConnection("connection", "the server closed an idle connection", is_transient=True)
        return AttemptFailed(
            "connection", f"the server closed the connection without a reply ({error})", is_transient=True
        )

    def _which_timeout(self, error: Exception, reply: aiohttp.ClientResponse | None) -> str:
        limits = self._timeouts
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return f"no connection within {limits.connect or limits.total:g} s"
        if isinstance(error, aiohttp.SocketTimeoutError):
            if reply is None:
                return f"the reply did not begin within {limits.first_byte:g} s"
            return f"the reply stopped in the middle for {limits.idle:g} s"
        return f"no complete reply within {limits.total:g} s"
