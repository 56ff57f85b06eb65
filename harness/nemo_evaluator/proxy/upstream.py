"""The last of the chain: the endpoint itself, with limits, retries and timeouts of the proxy's own."""

import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

import aiohttp

from nemo_evaluator.models.authorization import choose_authorization, secrets_of, split_credentials
from nemo_evaluator.models.limiter import AdaptiveLimiter
from nemo_evaluator.models.network import proxy_for, tls_context
from nemo_evaluator.models.reply import mask, refusal
from nemo_evaluator.models.retry import AttemptFailed, RetryPolicy
from nemo_evaluator.models.transport import StaleConnection, Timeouts, Transport
from nemo_evaluator.proxy.exchange import Reply, Request

WIDEST = 1024
"""Requests in flight where no parallelism is given: the harness knows how many it wants."""
BAD_GATEWAY, GATEWAY_TIMEOUT = 502, 504


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go, and how patiently."""

    url: str = field(repr=False)
    """As the user gave it: with a path, maybe with userinfo."""
    api_key: str | None = field(default=None, repr=False)
    parallelism: int | None = None
    max_retries: int | None = None
    request_timeout: float | None = None
    """Seconds of an attempt; and none begins later than that, because the harness has given up by then."""


class Upstream:
    def __init__(self, endpoint: Endpoint, headers: Mapping[str, str], environ: Mapping[str, str]) -> None:
        url, credentials = split_credentials(endpoint.url)
        parts = urlsplit(url)
        self._origin = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
        self._environ = environ
        self.authorization = choose_authorization(endpoint.api_key or "", None, environ)
        own = self.authorization or choose_authorization(None, credentials, {})
        self._headers = {"Content-Type": "application/json", **own, **headers}
        self.secrets = secrets_of(self._headers)
        self._timeouts = Timeouts().with_total(endpoint.request_timeout or 3600.0)
        self._transport = Transport(self._headers, self._timeouts, None, environ)
        self._retry = RetryPolicy.bounded(endpoint.max_retries, endpoint.request_timeout)
        self._limiter = AdaptiveLimiter(endpoint.parallelism or WIDEST)
        self._streams: aiohttp.ClientSession | None = None

    async def __call__(self, request: Request) -> Reply:
        return await (self._stream(request) if request.is_stream else self._ask(request))

    async def close(self) -> None:
        await self._transport.close()
        if self._streams is not None:
            await self._streams.close()

    async def _ask(self, request: Request) -> Reply:
        """The endpoint's last word, whatever it is; 502 and 504 where it said none. Waiting never holds a slot."""
        began, attempts, was_stale, retries = time.monotonic(), 0, False, None
        while True:
            async with self._limiter.slot() as ticket:
                attempts += 1
                reply, failure = await self._attempt(request)
                if failure is None:
                    self._limiter.succeeded()
                    reply.attempts = attempts
                    return reply
                if isinstance(failure, StaleConnection) and not was_stale:
                    was_stale = True
                    continue
                retries = retries or self._retry.begin(began)
                wait = self._retry.next_wait(retries, failure)
                if failure.status in (429, 503):
                    retry_after = failure.retry_after if wait is not None else None
                    self._limiter.throttled(ticket, retry_after=retry_after, is_quota=failure.status == 429)
            if wait is None:
                reply.attempts = attempts
                return reply
            await self._retry.sleep(wait)

    async def _attempt(self, request: Request) -> tuple[Reply, AttemptFailed | None]:
        if not self._transport.is_open:
            self._limiter.lower_to(self._transport.open(self._limiter.max_limit, self._origin))
        sent = time.perf_counter()
        try:
            status, headers, body = await self._transport.exchange(
                request.method, self._origin + request.path, request.raw or None
            )
        except AttemptFailed as failure:
            status = GATEWAY_TIMEOUT if failure.kind == "timeout" else BAD_GATEWAY
            return Reply.error(status, mask(str(failure), self.secrets)), failure
        reply = Reply(status, body, headers.get("Content-Type", "application/json"), seconds=time.perf_counter() - sent)
        if status < 300:
            return reply, None
        if "Retry-After" in headers:
            reply.headers = {"Retry-After": headers["Retry-After"]}
        return reply, refusal(status, headers, body, self.secrets)

    async def _stream(self, request: Request) -> Reply:
        """Passed on piece by piece as it comes; what has begun cannot be asked again, so nothing is retried."""
        url = self._origin + request.path
        session = self._streams = self._streams or self._session(url)
        sent = time.perf_counter()
        try:
            response = await session.request(
                request.method, url, data=request.raw, proxy=proxy_for(url, self._environ), allow_redirects=False
            )
        except TimeoutError:
            return Reply.error(GATEWAY_TIMEOUT, "the endpoint did not begin its stream in time")
        except (aiohttp.ClientError, OSError) as error:
            return Reply.error(BAD_GATEWAY, mask(f"the endpoint cannot be reached: {error}", self.secrets))
        content_type = response.headers.get("Content-Type", "text/event-stream")
        return Reply(response.status, b"", content_type, chunks=_chunks(response), seconds=time.perf_counter() - sent)

    def _session(self, url: str) -> aiohttp.ClientSession:
        limits = aiohttp.ClientTimeout(total=self._timeouts.total, sock_connect=self._timeouts.connect)
        context = tls_context(None, self._environ) if url.startswith("https:") else True
        connector = aiohttp.TCPConnector(limit=self._limiter.max_limit, ssl=context)
        return aiohttp.ClientSession(headers=self._headers, timeout=limits, connector=connector)


async def _chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async with response:
        async for chunk in response.content.iter_any():
            yield chunk
