"""The last of the chain: the endpoint itself, with limits, retries and timeouts of the proxy's own."""

import time
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit, urlunsplit

import aiohttp

from nemo_evaluator.models.authorization import choose_authorization, secrets_of, split_credentials
from nemo_evaluator.models.limiter import AdaptiveLimiter
from nemo_evaluator.models.network import proxy_for, tls_context
from nemo_evaluator.models.reply import mask, refusal
from nemo_evaluator.models.retry import (
    ATTEMPTS,
    PATIENCE_SECONDS,
    TIMEOUTS,
    AttemptFailed,
    RetryPolicy,
    stop_after_timeouts,
)
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
    """Seconds of an attempt."""

    @property
    def patience(self) -> float | None:
        """Seconds after which the last attempt has ended, for the harness that waits for it."""
        if self.request_timeout is None:
            return None
        attempts = ATTEMPTS if self.max_retries is None else self.max_retries + 1
        return attempts * self.request_timeout + PATIENCE_SECONDS


@dataclass(frozen=True, slots=True)
class HeaderChanges:
    """To the headers that the proxy sends; those of the harness end at the proxy. Names in any case."""

    remove: Collection[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    add: Mapping[str, str] = field(default_factory=dict, repr=False)

    def applied(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Removed, then renamed, then added."""
        gone = {name.lower() for name in self.remove}
        names = {old.lower(): new for old, new in self.rename.items()}
        kept = {names.get(name.lower(), name): value for name, value in headers.items() if name.lower() not in gone}
        return {**kept, **self.add}


class Upstream:
    def __init__(self, endpoint: Endpoint, changes: HeaderChanges, environ: Mapping[str, str]) -> None:
        url, credentials = split_credentials(endpoint.url)
        parts = urlsplit(url)
        self._origin = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
        self._environ = environ
        self.authorization = choose_authorization(endpoint.api_key or "", None, environ)
        own = self.authorization or choose_authorization(None, credentials, {})
        self._headers = changes.applied({"Content-Type": "application/json", **own})
        self.secrets = tuple(dict.fromkeys([*secrets_of(own), *secrets_of(self._headers)]))
        self._timeouts = Timeouts().with_total(endpoint.request_timeout or 3600.0)
        self._transport = Transport(self._headers, self._timeouts, None, environ)
        policy = RetryPolicy.bounded(endpoint.max_retries)
        self._retry = replace(policy, stop=policy.stop | stop_after_timeouts(TIMEOUTS))
        self._limiter = AdaptiveLimiter(endpoint.parallelism or WIDEST)
        self._streams: aiohttp.ClientSession | None = None

    async def __call__(self, request: Request) -> Reply:
        """The endpoint's last word, whatever it is; 502 and 504 where it said none. Waiting never holds a slot."""
        attempt = self._begin if request.is_stream else self._attempt
        began, attempts, was_stale, retries = time.monotonic(), 0, False, None
        while True:
            async with self._limiter.slot() as ticket:
                attempts += 1
                reply, failure = await attempt(request)
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

    async def close(self) -> None:
        await self._transport.close()
        if self._streams is not None:
            await self._streams.close()

    async def _attempt(self, request: Request) -> tuple[Reply, AttemptFailed | None]:
        if not self._transport.is_open:
            self._limiter.lower_to(self._transport.open(self._limiter.max_limit, self._origin))
        sent = time.perf_counter()
        try:
            status, headers, body = await self._transport.exchange(
                request.method, self._origin + request.path, request.raw or None
            )
        except AttemptFailed as failure:
            return self._unanswered(failure)
        return self._judged(status, headers, body, time.perf_counter() - sent)

    async def _begin(self, request: Request) -> tuple[Reply, AttemptFailed | None]:
        """Of a stream, which is passed on piece by piece as it comes: once it has begun it cannot be asked again."""
        url = self._origin + request.path
        session = self._streams = self._streams or self._session(url)
        sent = time.perf_counter()
        try:
            response = await session.request(
                request.method, url, data=request.raw, proxy=proxy_for(url, self._environ), allow_redirects=False
            )
            if response.status >= 300:
                async with response:
                    body = await response.read()
                return self._judged(response.status, response.headers, body, time.perf_counter() - sent)
        except TimeoutError:
            failure = AttemptFailed("timeout", "the endpoint did not begin its stream in time", is_transient=True)
            return self._unanswered(failure)
        except (aiohttp.ClientError, OSError) as error:
            said = f"the endpoint cannot be reached: {error}"
            return self._unanswered(AttemptFailed("connection", said, is_transient=True))
        content_type = response.headers.get("Content-Type", "text/event-stream")
        seconds = time.perf_counter() - sent
        return Reply(response.status, b"", content_type, chunks=_chunks(response), seconds=seconds), None

    def _judged(
        self, status: int, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> tuple[Reply, AttemptFailed | None]:
        reply = Reply(status, body, headers.get("Content-Type", "application/json"), seconds=seconds)
        if status < 300:
            return reply, None
        if "Retry-After" in headers:
            reply.headers = {"Retry-After": headers["Retry-After"]}
        return reply, refusal(status, headers, body, self.secrets)

    def _unanswered(self, failure: AttemptFailed) -> tuple[Reply, AttemptFailed]:
        status = GATEWAY_TIMEOUT if failure.kind == "timeout" else BAD_GATEWAY
        return Reply.error(status, mask(str(failure), self.secrets)), failure

    def _session(self, url: str) -> aiohttp.ClientSession:
        limits = aiohttp.ClientTimeout(total=self._timeouts.total, sock_connect=self._timeouts.connect)
        context = tls_context(None, self._environ) if url.startswith("https:") else True
        connector = aiohttp.TCPConnector(limit=self._limiter.max_limit, ssl=context)
        return aiohttp.ClientSession(headers=self._headers, timeout=limits, connector=connector)


async def _chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async with response:
        async for chunk in response.content.iter_any():
            yield chunk
