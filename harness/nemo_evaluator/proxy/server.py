"""The proxy of one task: a harness on one side, the endpoint on the other."""

import asyncio
import hmac
import logging
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

from aiohttp import web

from nemo_evaluator.errors import UsageError
from nemo_evaluator.models.authorization import split_credentials
from nemo_evaluator.proxy.config import AdapterConfig
from nemo_evaluator.proxy.exchange import Interceptor, Reply, Request, chained
from nemo_evaluator.proxy.interceptors.caching import Caching
from nemo_evaluator.proxy.interceptors.client_errors import ClientErrors
from nemo_evaluator.proxy.interceptors.failure_log import FailureLog
from nemo_evaluator.proxy.interceptors.payload_modifier import PayloadModifier
from nemo_evaluator.proxy.interceptors.progress import Progress
from nemo_evaluator.proxy.interceptors.reasoning import Reasoning
from nemo_evaluator.proxy.interceptors.request_log import RequestLog
from nemo_evaluator.proxy.interceptors.response_log import ResponseLog
from nemo_evaluator.proxy.interceptors.response_stats import ResponseStats
from nemo_evaluator.proxy.interceptors.system_message import SystemMessage
from nemo_evaluator.proxy.linelog import LineLog
from nemo_evaluator.proxy.store import AnswerStore
from nemo_evaluator.proxy.upstream import Endpoint, HeaderChanges, Upstream

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
LARGEST_REQUEST = 1 << 30
"""Bytes; images travel inside."""
GRACE_SECONDS = 1.0
"""For requests that are under way when the task has ended: nobody waits for their answers."""
KEEPING_SECONDS = 8.0
"""The same where answers are kept: a stopped task that goes on has them, and does not ask again. Who stops a task waits
for twenty seconds, ten of which may be the harness's."""


class Proxy:
    """`async with Proxy(...) as proxy:` and let the harness ask `proxy.url` what it would ask the endpoint.

    It listens on loopback only and adds no rights: whoever asks must bring the endpoint's own key.
    """

    def __init__(self, config: AdapterConfig, endpoint: Endpoint, folder: Path, environ: Mapping[str, str]) -> None:
        """Raises UsageError if the cache cannot be opened."""
        self._endpoint = endpoint
        self._upstream = Upstream(endpoint, _header_changes(config), environ)
        self._expected = self._upstream.authorization.get("Authorization", "")
        self.failed = asyncio.Event()
        self.failure: str | None = None
        """Why the task should end now."""
        self._stats = (
            ResponseStats(config.logging_aggregated_stats_interval) if config.tracking_requests_stats else None
        )
        self._reasoning, self._counts_reasoning = _reasoning(config), config.track_reasoning
        self._interceptors = self._chain(config, folder)
        self._ask = chained(self._interceptors, self._upstream)
        self._grace = KEEPING_SECONDS if config.use_caching else GRACE_SECONDS
        self._runner: web.ServerRunner | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        # the low-level server: no routes, no middlewares, a third less time a request
        server = web.Server(self._handle, request_factory=_request, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=self._grace)
        await self._runner.setup()
        site = web.TCPSite(self._runner, LOOPBACK, 0)
        await site.start()
        parts = urlsplit(split_credentials(self._endpoint.url)[0])
        host, port = self._runner.addresses[0][:2]
        self.url = urlunsplit(("http", f"{host}:{port}", parts.path, parts.query, ""))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()
        for interceptor in self._interceptors:
            await interceptor.close()
        await self._upstream.close()

    @property
    def patience(self) -> float | None:
        """Seconds that whoever asks should wait for an answer."""
        return self._endpoint.patience

    def metrics(self) -> dict[str, Any]:
        """For eval_factory_metrics.json."""
        found: dict[str, Any] = {}
        if self._reasoning is not None and self._counts_reasoning:
            found["reasoning"] = asdict(self._reasoning.counts)
        if self._stats is not None:
            found["response_stats"] = self._stats.report()
        return found

    def _chain(self, config: AdapterConfig, folder: Path) -> list[Interceptor]:
        """From the harness to the endpoint: what changes requests stands before what logs and keeps them, and the
        cache is last, so that it holds what the endpoint said and not what was made of it."""
        secrets = self._upstream.secrets
        chain: list[Interceptor] = []
        if config.use_progress_tracking:
            chain.append(Progress(folder / "progress", config.progress_tracking_url, config.progress_tracking_interval))
        if self._stats is not None:
            chain.append(self._stats)
        if config.use_raise_client_errors:
            chain.append(ClientErrors(self._fail))
        if self._reasoning is not None:
            chain.append(self._reasoning)
        if config.use_system_prompt and config.custom_system_prompt:
            chain.append(SystemMessage(config.custom_system_prompt, config.system_prompt_strategy))
        if config.modifies_payload:
            chain.append(PayloadModifier(config.params_to_add, config.params_to_remove, config.params_to_rename))
        if config.requests_kept != 0:
            chain.append(RequestLog(LineLog(folder / "requests.jsonl", config.requests_kept, secrets)))
        if config.responses_kept != 0:
            chain.append(ResponseLog(LineLog(folder / "responses.jsonl", config.responses_kept, secrets)))
        if config.log_failed_requests:
            chain.append(FailureLog(LineLog(folder / "failed_requests.jsonl", None, secrets)))
        if config.use_caching:
            store = _store(Path(config.caching_dir) if config.caching_dir else folder / "cache")
            chain.append(Caching(store, reuses=config.reuse_cached_responses))
        return chain

    def _fail(self, reason: str) -> None:
        self.failure = self.failure or reason
        self.failed.set()

    async def _handle(self, message: web.BaseRequest) -> web.StreamResponse:
        if self._expected and not hmac.compare_digest(message.headers.get("Authorization", ""), self._expected):
            said = "the proxy lets only those pass who bring the endpoint's own key as `Authorization: Bearer KEY`"
            return _response(Reply.error(401, said))
        request = Request.read(message.method, message.path_qs, await message.read())
        reply = await self._ask(request)
        if reply.chunks is None:
            return _response(reply)
        return await _streamed(message, reply)


def _header_changes(config: AdapterConfig) -> HeaderChanges:
    return HeaderChanges(config.headers_to_remove, config.headers_to_rename, config.headers_to_add)


def _reasoning(config: AdapterConfig) -> Reasoning | None:
    if not config.separates_reasoning:
        return None
    return Reasoning(config.start_reasoning_token, config.end_reasoning_token, config.include_if_reasoning_not_finished)


def _store(folder: Path) -> AnswerStore:
    try:
        return AnswerStore(folder)
    except OSError as error:
        raise UsageError(f"caching_dir {folder} cannot be used: {error.strerror}. Name a folder to write to.") from None


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=LARGEST_REQUEST)


def _response(reply: Reply) -> web.Response:
    headers = {"Content-Type": reply.content_type, **reply.headers}
    return web.Response(status=reply.status, body=reply.body, headers=headers)


async def _streamed(message: web.BaseRequest, reply: Reply) -> web.StreamResponse:
    assert reply.chunks is not None
    response = web.StreamResponse(status=reply.status, headers={"Content-Type": reply.content_type, **reply.headers})
    await response.prepare(message)
    async for chunk in reply.chunks:
        await response.write(chunk)
    await response.write_eof()
    return response
