"""ModelClient: a question in, a ModelResponse or a RequestError out, against any OpenAI-compatible endpoint."""

import asyncio
import difflib
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import orjson

from nemo_evaluator.errors import RequestError, UsageError
from nemo_evaluator.models.authorization import choose_authorization, secrets_of, split_credentials
from nemo_evaluator.models.call import Call, Tally, compiled, last_text, leading_system, strings, to_bytes
from nemo_evaluator.models.learned import Dialects
from nemo_evaluator.models.limiter import AdaptiveLimiter
from nemo_evaluator.models.payload import (
    LEAST_STOPS,
    PATHS,
    Dialect,
    Generation,
    Messages,
    Protocol,
    chat_messages,
    completion_prompt,
    endpoint_url,
    generation_fields,
    redact_url,
    resource_url,
)
from nemo_evaluator.models.reply import Reading, mask, read_reply
from nemo_evaluator.models.retry import AttemptFailed, RetryPolicy
from nemo_evaluator.models.transport import StaleConnection, Timeouts, Transport
from nemo_evaluator.types import ModelResponse

logger = logging.getLogger(__name__)

HINT_SECONDS = 5.0
EARLY_STOP_CHARACTERS = 16


class ModelClient:
    """Shared by any number of tasks of one event loop. Close it, or use it as `async with`."""

    def __init__(
        self,
        base_url: str = "https://inference-api.nvidia.com/v1",
        model: str = "azure/openai/gpt-5.2",
        api_key: str | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        stop: list[str] | None = None,
        frequency_penalty: float | None = None,
        presence_penalty: float | None = None,
        timeout: float = 120.0,
        max_concurrent: int = 8,
        *,
        timeouts: Timeouts | None = None,
        retry: RetryPolicy | None = None,
        limiter: AdaptiveLimiter | None = None,
        dialects: Dialects | None = None,
        extra_body: Mapping[str, Any] | None = None,
        extra_headers: Mapping[str, str] | None = None,
        ca_bundle: str | None = None,
        reasoning_pattern: str | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        if max_concurrent < 1:
            raise UsageError(f"max_concurrent={max_concurrent} must be at least 1.")
        self.model = model
        self.base_url, credentials = split_credentials(base_url)
        self.limiter = limiter or AdaptiveLimiter(max_concurrent)
        self.timeouts = (timeouts or Timeouts()).with_total(timeout)
        self.retry = retry or RetryPolicy()
        sampling = (temperature, max_tokens, top_p, seed, strings(stop), frequency_penalty, presence_penalty)
        self._generation = Generation(*sampling, dict(extra_body or {}))
        authorization = choose_authorization(api_key, credentials, environ)
        headers = {"Content-Type": "application/json", **authorization, **(extra_headers or {})}
        self._reading = Reading("chat", self._generation.stop, compiled(reasoning_pattern), secrets_of(headers))
        self._urls = {protocol: endpoint_url(self.base_url, protocol) for protocol in PATHS}
        self._transport = Transport(headers, self.timeouts, ca_bundle, environ)
        dialects = dialects or Dialects()
        self._learned = {protocol: dialects.of(url, model) for protocol, url in self._urls.items()}
        self._hint_lock = asyncio.Lock()
        self._model_hint: str | None = None
        self._tally = Tally()

    def __repr__(self) -> str:
        return f"ModelClient({redact_url(self.base_url)!r}, {self.model!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def rest(self) -> None:
        """Give the connections back if no request is under way; the next one opens new ones."""
        if not self.limiter.in_flight:
            await self.close()

    async def close(self) -> None:
        await self._transport.close()

    # What is asked

    async def chat(
        self,
        prompt: str = "",
        system: str | None = None,
        *,
        messages: Messages | None = None,
        seed: int | None = None,
    ) -> ModelResponse:
        """`messages` take the place of `prompt`; `system` reaches the model either way."""
        sent = chat_messages(prompt, system, messages)
        response = await self._ask(self._call("chat", {"messages": sent}, seed))
        response.request_prompt = prompt or last_text(sent)
        response.request_system = leading_system(sent)
        return response

    async def complete(
        self,
        prompt: str,
        system: str | None = None,
        *,
        seed: int | None = None,
        logprobs: int | None = None,
        echo: bool = False,
        max_tokens: int | None = None,
    ) -> ModelResponse:
        """With `echo` and `logprobs` the reply must hold those of the prompt itself, or the request fails."""
        question: dict[str, Any] = {"prompt": completion_prompt(prompt, system)}
        if logprobs is not None:
            question["logprobs"] = logprobs
        if echo:
            question["echo"] = True
        call = self._call("completions", question, seed, max_tokens)
        if echo:
            call.reading = replace(call.reading, stop=(), must_echo=logprobs is not None)
        response = await self._ask(call)
        response.request_prompt = prompt
        response.request_system = system
        return response

    def payload(
        self,
        protocol: Protocol,
        prompt: str,
        system: str | None = None,
        *,
        messages: Messages | None = None,
        seed: int | None = None,
    ) -> dict[str, Any]:
        """The body exactly as it would be sent."""
        if protocol == "chat":
            return self._body(self._call("chat", {"messages": chat_messages(prompt, system, messages)}, seed))
        return self._body(self._call("completions", {"prompt": completion_prompt(prompt, system)}, seed))

    def url(self, protocol: Protocol) -> str:
        return self._urls[protocol]

    @property
    def generation(self) -> dict[str, Any]:
        """The parameters as they are sent to the chat endpoint."""
        return generation_fields(self._generation, self._learned["chat"].dialect)

    async def list_models(self) -> list[dict[str, Any]]:
        url = resource_url(self.base_url, "/models")
        async with self.limiter.slot():
            self._open_transport()
            status, headers, body = await self._transport.exchange("GET", url)
        if status != 200:
            read_reply(status, headers, body, self._reading)
        try:
            return list(orjson.loads(body)["data"])
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise RequestError("bad_reply", f"{redact_url(url)} does not list models in the OpenAI shape") from None

    def stats(self) -> dict[str, Any]:
        return {
            "requests": self._tally.requests,
            "retries": self._tally.retries,
            "stale_connections": self._tally.stale_connections,
            "connections_opened": self._transport.connections_opened,
            "errors": dict(self._tally.errors),
            "over_budget": self._tally.over_budget,
            "early_stops": self._tally.early_stops,
            "limiter": self.limiter.state(),
            "dialect": {protocol: learned.dialect.to_dict() for protocol, learned in self._learned.items()},
        }

    # How it is asked

    def _call(
        self, protocol: Protocol, question: dict[str, Any], seed: int | None, max_tokens: int | None = None
    ) -> Call:
        generation, reading = self._generation, self._reading
        if seed is not None:
            generation = replace(generation, seed=seed)
        if max_tokens is not None:
            generation = replace(generation, max_tokens=max_tokens)
        if protocol != reading.protocol:
            reading = replace(reading, protocol=protocol)
        return Call(protocol, question, generation, reading, self._learned[protocol].dialect)

    def _body(self, call: Call) -> dict[str, Any]:
        return {"model": self.model, **call.question, **generation_fields(call.generation, call.dialect)}

    async def _ask(self, call: Call) -> ModelResponse:
        """Attempts until one succeeds or the policy says that it is enough. Waiting never holds a slot."""
        if call.generation.max_tokens is not None or len(call.generation.stop) > LEAST_STOPS:
            await self._learned[call.protocol].scout.follow()
        while True:
            async with self.limiter.slot() as ticket:
                try:
                    response = await self._attempt(call)
                except AttemptFailed as error:
                    failure, wait = error, self._next_wait(call, error, ticket)
                else:
                    self.limiter.succeeded()
                    self._note(call, response)
                    return response
            if wait is None:
                raise await self._final(call, failure)
            if wait:
                await self.retry.sleep(wait)

    async def _attempt(self, call: Call) -> ModelResponse:
        self._open_transport()
        self._tally.requests += 1
        call.attempts += 1
        if call.started is None:
            call.started = self.retry.clock()
        call.dialect = self._learned[call.protocol].dialect
        body = to_bytes(self._body(call))
        sent = time.perf_counter()
        status, headers, reply = await self._transport.exchange("POST", self._urls[call.protocol], body)
        latency = time.perf_counter() - sent
        response = read_reply(status, headers, reply, call.reading)
        response.latency_ms = latency * 1000
        return response

    def _open_transport(self) -> None:
        if not self._transport.is_open:
            self.limiter.lower_to(self._transport.open(self.limiter.max_limit, self.base_url))

    def _next_wait(self, call: Call, error: AttemptFailed, ticket: int) -> float | None:
        """Seconds before the next attempt, None when there is none. Runs while the slot is still held, so that
        the limiter knows of a refusal before it lets the next request start."""
        if isinstance(error, StaleConnection) and not call.was_stale:
            call.was_stale = True
            self._tally.stale_connections += 1
            return 0.0
        if self._has_learned(call, error):
            return 0.0
        call.retries = call.retries or self.retry.begin(call.started or 0.0)
        wait = self.retry.next_wait(call.retries, error)
        if error.status in (429, 503):
            retry_after = error.retry_after if wait is not None else None
            self.limiter.throttled(ticket, retry_after=retry_after, is_quota=error.status == 429)
        if wait is not None:
            self._tally.retries += 1
            logger.debug("attempt %d failed, the next follows in %.1f s: %s", call.attempts, wait, error)
        return wait

    def _has_learned(self, call: Call, error: AttemptFailed) -> bool:
        """True when the refused request can be sent again in other words: not a failure, and not counted as one."""
        learned = call.dialect.learn(error.status or 0, str(error), self._body(call))
        if learned is None:
            return False
        if self._learned[call.protocol].dialect == call.dialect:
            self._learned[call.protocol].dialect = learned
            self._tell_dialect(call.protocol, learned)
        return True

    def _tell_dialect(self, protocol: Protocol, dialect: Dialect) -> None:
        where = redact_url(self._urls[protocol])
        if dialect.token_field is None:
            logger.warning("%s takes neither max_tokens nor max_completion_tokens: answers are not limited.", where)
        else:
            logger.info(
                "%s takes %s and at most %s stop strings.", where, dialect.token_field, dialect.max_stops or "any"
            )

    async def _final(self, call: Call, error: AttemptFailed) -> RequestError:
        self._tally.errors[error.kind] += 1
        self._learned[call.protocol].scout.end()
        message = mask(str(error), call.reading.secrets)
        if error.kind in ("not_found", "auth", "connection"):
            message = f"{redact_url(self._urls[call.protocol])}: {message}"
        if error.kind == "not_found":
            message += await self._nearest_model()
        return RequestError(error.kind, message, status=error.status, is_unreachable=error.is_unreachable)

    def _note(self, call: Call, response: ModelResponse) -> None:
        response.retries = call.attempts - 1
        limit, used = call.generation.max_tokens, response.completion_tokens
        if limit is not None and used is not None and used > limit:
            self._tally.over_budget += 1
        if call.reading.stop and response.finish_reason == "stop" and len(response.content) < EARLY_STOP_CHARACTERS:
            self._tally.early_stops += 1
        self._learned[call.protocol].scout.end()

    async def _nearest_model(self) -> str:
        """What the endpoint serves instead; asked once, however many requests meet a 404."""
        async with self._hint_lock:
            if self._model_hint is None:
                self._model_hint = await self._model_advice()
        return self._model_hint

    async def _model_advice(self) -> str:
        try:
            async with asyncio.timeout(HINT_SECONDS):
                served = [str(item.get("id")) for item in await self.list_models()]
        except (RequestError, TimeoutError):
            return ""
        if self.model in served or not served:
            return ""
        if near := difflib.get_close_matches(self.model, served, n=1, cutoff=0.4):
            return f" Did you mean model {near[0]!r}?"
        return f" It serves {', '.join(served[:5])}; none is called {self.model!r}."
