"""Requests to one address over aiohttp's connection pool and parser, without the layers of its session.

Those layers (redirects, cookies, a request and a response object for each exchange, a task that writes the body) cost
two thirds of a request, and none of them is needed to post JSON. What is used instead of a session:
`connector.connect`, and the protocol of a connection with its `set_response_params`, `start_timeout` and `read`.
"""

import asyncio
from collections.abc import Mapping
from typing import Protocol

import aiohttp
from multidict import CIMultiDictProxy
from yarl import URL

from nemo_evaluator.errors import UsageError

Reply = tuple[int, CIMultiDictProxy[str], bytes]


class Watch(Protocol):
    """Told when the reply begins."""

    has_begun: bool


class Wire:
    """One method and address, on one event loop."""

    def __init__(
        self,
        connector: aiohttp.BaseConnector,
        method: str,
        url: URL,
        headers: Mapping[str, str],
        limits: aiohttp.ClientTimeout,
        idle_seconds: float | None,
        read_buffer: int,
    ) -> None:
        self._connector = connector
        self._limits, self._idle_seconds, self._read_buffer = limits, idle_seconds, read_buffer
        self._address = aiohttp.ClientRequest(method, url, headers=headers, loop=asyncio.get_running_loop())
        self._head = _head(self._address, with_body=method == "POST")

    async def exchange(self, body: bytes | None, watch: Watch) -> Reply:
        """Raises aiohttp's errors and OSError, as a session would."""
        try:
            connection = await self._connector.connect(self._address, [], self._limits)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"no connection to {self._address.url}") from error
        try:
            return await self._ask(connection, body, watch)
        except BaseException:
            connection.close()
            raise

    async def _ask(self, connection: aiohttp.connector.Connection, body: bytes | None, watch: Watch) -> Reply:
        protocol = connection.protocol
        assert protocol is not None and protocol.transport is not None
        protocol.set_response_params(
            read_until_eof=True, read_timeout=self._limits.sock_read, read_bufsize=self._read_buffer
        )
        protocol.transport.write(self._head if body is None else b"%b%d\r\n\r\n%b" % (self._head, len(body), body))
        protocol.start_timeout()
        message, payload = await protocol.read()
        while message.code < 200:  # informational; the reply follows
            message, payload = await protocol.read()
        watch.has_begun = True
        if payload.is_eof():
            content = payload.read_nowait()
        else:
            protocol.read_timeout = self._idle_seconds
            protocol.start_timeout()
            content = await payload.read()
        connection.release()
        return message.code, message.headers, content


def _head(request: aiohttp.ClientRequest, with_body: bool) -> bytes:
    """All that comes before the length and the body. Raises UsageError for a header that no request can have."""
    headers = {name: value for name, value in request.headers.items() if name.lower() != "content-length"}
    for name, value in headers.items():
        if any(character in name + value for character in "\r\n\0"):
            raise UsageError(f"The header {name!r} holds a line break: give each header in one line.")
    lines = [f"{request.method} {request.url.raw_path_qs} HTTP/1.1", *(f"{name}: {headers[name]}" for name in headers)]
    head = "\r\n".join(lines) + ("\r\nContent-Length: " if with_body else "\r\n\r\n")
    return head.encode("utf-8")
