"""The one fake OpenAI-compatible server: fast when well behaved, and able to misbehave in every way a real one does.

In a test:      async with FakeServer(Behaviour(status=429, retry_after=1, when=When(first=2))) as server: server.url
As a process:   python -m tests.fakes.openai_server --port 0 --settings '{"answer": "18"}'
                prints `url: http://127.0.0.1:PORT`; POST /__control takes the same JSON, GET /__log tells what came.
"""

import argparse
import asyncio
import random
import ssl as tls
import time
from collections import Counter, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from email.utils import formatdate
from pathlib import Path
from typing import Any, Literal, cast

import orjson
import uvloop

from tests.fakes import openai_replies as replies
from tests.fakes.openai_replies import AnswerFunction, Request, Shape

PATHS = ("/v1/chat/completions", "/v1/completions")
SHAPING = (b'"stop"', b'"echo"', b'"logprobs"')
"""Parameters that change even a constant answer."""
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


@dataclass(frozen=True, slots=True)
class When:
    """Which requests a behaviour strikes; all conditions that are given must hold."""

    numbers: Collection[int] | None = None
    """Ordinals of model requests, from 0."""
    first: int | None = None
    """The first n requests that meet the other conditions."""
    first_per_prompt: int | None = None
    """The first n asks of each prompt."""
    share: float = 1.0
    """Of requests, at random (seeded)."""
    share_of_prompts: float = 1.0
    """Of prompts, by their hash: the same ones every time."""
    prompt: str | None = None
    """A part of the prompt."""
    path: str | None = None
    """The end of the path, such as `/models`."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One way to answer or to fail. Those that strike the same request add up; of two statuses the later one counts."""

    when: When = When()
    delay: float = 0.0
    jitter: float = 0.0
    delay_per_in_flight: float = 0.0
    """Seconds for each request in flight: a server that more load makes slower."""
    hang: Literal["headers", "body"] | None = None
    drop: Literal["headers", "body"] | None = None
    """Close the connection before the headers, or in the middle of the body."""
    closes_silently: bool = False
    """Close after the answer without having said so: the client finds a stale keep-alive connection."""
    status: int | None = None
    retry_after: float | str | None = None
    """Seconds, or with `+` before them a date so many seconds from now."""
    reply: Literal["error", "html", "empty", "truncated", "no_choices", "not_an_object"] | None = None
    body: str | dict[str, Any] | None = None
    """The body as it is to be, of any status."""
    shape: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Shape` for this answer."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the server is: its model, its answers and its rules."""

    behaviours: tuple[Behaviour, ...] = ()
    answer: str | AnswerFunction = "The answer is 42."
    mode: Literal["text", "hash", "counter", "filler", "key"] = "text"
    size: int = 0
    """Bytes of filler."""
    answer_key: Mapping[str, str] = field(default_factory=dict)
    """Part of a prompt -> answer; `answer` for all others."""
    shape: Shape = field(default_factory=Shape)
    model: str | None = None
    """The only model served; None serves any."""
    models: tuple[str, ...] = ()
    """More ids listed by /v1/models."""
    api_key: str | None = None
    refuses: tuple[str, ...] = ()
    """Of max_tokens, max_completion_tokens, stops (more than four)."""
    max_model_len: int | None = None
    bucket: tuple[float, float] | None = None
    """Token bucket: rate a second, burst."""
    loading_seconds: float = 0.0
    logs: bool = True
    seed: int = 0

    @classmethod
    def parse(cls, values: Mapping[str, Any], base: "Settings") -> "Settings":
        """JSON -> settings on top of others. An unknown name is an error: a fake that ignores wishes proves nothing."""
        changes = dict(values)
        if "behaviours" in changes:
            changes["behaviours"] = tuple(
                Behaviour(**{**item, "when": When(**item.get("when", {}))}) for item in changes["behaviours"]
            )
        if "shape" in changes:
            changes["shape"] = replace(base.shape, **changes["shape"])
        return replace(base, **changes)

    @property
    def is_constant(self) -> bool:
        """True when every request gets the same bytes, so that nothing has to be parsed."""
        rules = (self.behaviours, self.model, self.api_key, self.refuses, self.max_model_len, self.bucket)
        fixed = isinstance(self.answer, str) and self.mode in ("text", "filler") and self.shape == Shape()
        return fixed and not any(rules) and not self.loading_seconds


class TokenBucket:
    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self.tokens, self.updated = burst, time.monotonic()

    def take(self) -> float:
        """0 when there was a token, else the seconds until there is one."""
        now = time.monotonic()
        self.tokens = min(self.burst, self.tokens + (now - self.updated) * self.rate)
        self.updated = now
        if self.tokens < 1:
            return (1 - self.tokens) / self.rate
        self.tokens -= 1
        return 0.0


class FakeServer:
    """Counts are of model requests; /v1/models and the control routes are logged apart."""

    def __init__(self, *behaviours: Behaviour, ssl: tls.SSLContext | None = None, **settings: Any) -> None:
        self._ssl = ssl
        self.port = 0
        self.apply(Settings(behaviours=behaviours, **settings))
        self.reset_log()
        self.connections: set[Connection] = set()
        self._all_closed = asyncio.Event()
        self.connections_opened = 0
        self.peak_connections = 0
        self.in_flight = 0

    def apply(self, settings: Settings) -> None:
        self.settings = settings
        self.started = time.monotonic()
        self._random = random.Random(settings.seed)
        self._strikes: Counter[int] = Counter()
        self._asks: Counter[tuple[int, str]] = Counter()
        self._bucket = TokenBucket(*settings.bucket) if settings.bucket else None
        self.constant = self._constant_replies() if settings.is_constant else {}

    def control(self, **changes: Any) -> None:
        self.apply(Settings.parse(changes, self.settings))

    def reset_log(self) -> None:
        self.count = 0
        self.log: deque[Request] = deque()
        self.other_log: deque[Request] = deque(maxlen=1000)
        self.statuses: Counter[int] = Counter()
        self.peak_in_flight = 0

    @property
    def root(self) -> str:
        return f"{'https' if self._ssl else 'http'}://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return self.root + "/v1"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.json for request in self.log]

    @property
    def prompts(self) -> list[str]:
        return [request.prompt for request in self.log]

    def asks(self) -> Counter[str]:
        """How often each prompt was asked."""
        return Counter(self.prompts)

    async def start(self, port: int = 0) -> "FakeServer":
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self, loop), "127.0.0.1", port, ssl=self._ssl, backlog=4096
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        self._server.close()
        self._all_closed.clear()
        for connection in list(self.connections):
            connection.abort()
        await self._server.wait_closed()
        if self.connections:
            await self._all_closed.wait()

    def forget(self, connection: "Connection") -> None:
        self.connections.discard(connection)
        if not self.connections:
            self._all_closed.set()

    def close_idle_connections(self) -> None:
        for connection in list(self.connections):
            connection.abort()

    async def __aenter__(self) -> "FakeServer":
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def counts(self) -> dict[str, Any]:
        return {
            "requests": self.count,
            "statuses": {str(status): n for status, n in sorted(self.statuses.items())},
            "peak_in_flight": self.peak_in_flight,
            "open_connections": len(self.connections),
            "peak_connections": self.peak_connections,
            "connections_opened": self.connections_opened,
        }

    # What is answered

    def reply(self, request: Request) -> "Reply":
        """Decides the whole fate of a request; the connection only carries it out."""
        path = request.path.partition("?")[0]
        if path.startswith("/__"):
            return self._controlled(request, path)
        struck = [item for n, item in enumerate(self.settings.behaviours) if self._strikes_now(n, item.when, request)]
        reply = Reply(self._delay(struck))
        if not self._misbehave(request, struck, reply):
            self._answer_by_the_rules(request, path, struck, reply)
        return reply

    def _controlled(self, request: Request, path: str) -> "Reply":
        if path == "/__control":
            changes = request.json
            if changes.pop("reset_log", False):
                self.reset_log()
            self.control(**changes)
            return Reply(body=b"{}")
        body = self.counts()
        if path == "/__log":
            body["log"] = [entry.entry() for entry in self.log]
        return Reply(body=orjson.dumps(body))

    def _strikes_now(self, index: int, when: When, request: Request) -> bool:
        if when.path is not None and not request.path.partition("?")[0].endswith(when.path):
            return False
        if when.path is None and request.method != "POST":
            return False
        if when.numbers is not None and request.number not in when.numbers:
            return False
        if when.prompt is not None and when.prompt not in request.prompt:
            return False
        if when.share_of_prompts < 1 and replies.hash_of(request.prompt) % 10_000 >= when.share_of_prompts * 10_000:
            return False
        if when.share < 1 and self._random.random() >= when.share:
            return False
        return self._is_within_count(index, when, request)

    def _is_within_count(self, index: int, when: When, request: Request) -> bool:
        if when.first_per_prompt is not None:
            self._asks[index, request.prompt] += 1
            if self._asks[index, request.prompt] > when.first_per_prompt:
                return False
        self._strikes[index] += 1
        return when.first is None or self._strikes[index] <= when.first

    def _delay(self, struck: list[Behaviour]) -> float:
        return sum(
            item.delay + self._random.random() * item.jitter + item.delay_per_in_flight * self.in_flight
            for item in struck
        )

    def _misbehave(self, request: Request, struck: list[Behaviour], reply: "Reply") -> bool:
        """Fills the reply with what the behaviours ask for; true when that is all there is to say."""
        decided = False
        for item in struck:
            reply.hang = item.hang or reply.hang
            reply.drop = item.drop or reply.drop
            reply.closes_silently |= item.closes_silently
            if item.retry_after is not None:
                reply.headers["Retry-After"] = retry_after(item.retry_after)
            if item.status is not None and item.status >= 400:
                reply.status = item.status
                reply.body = orjson.dumps(replies.error_body(item.status))
                decided = True
            if item.body is not None or item.reply is not None:
                self._set_body(request, item, reply)
                decided = True
        return decided

    def _set_body(self, request: Request, item: Behaviour, reply: "Reply") -> None:
        if item.body is not None:
            reply.body = item.body.encode() if isinstance(item.body, str) else orjson.dumps(item.body)
            return
        good = self._answer_body(request, [])
        bodies = {
            "error": orjson.dumps(replies.error_body(reply.status if reply.status >= 400 else 500)),
            "html": replies.HTML.encode(),
            "empty": b"",
            "truncated": orjson.dumps(good)[:-20],
            "no_choices": orjson.dumps({**good, "choices": []}),
            "not_an_object": b'["not", "an", "object"]',
        }
        reply.body = bodies[item.reply or "empty"]
        if item.reply == "html":
            reply.headers["Content-Type"] = "text/html"

    def _answer_by_the_rules(self, request: Request, path: str, struck: list[Behaviour], reply: "Reply") -> None:
        """What an honest server would say, its refusals included."""
        settings = self.settings
        if time.monotonic() - self.started < settings.loading_seconds:
            reply.refuse(503, replies.error_body(503, "The model is loading."))
        elif settings.api_key is not None and request.headers.get("authorization") != f"Bearer {settings.api_key}":
            reply.refuse(401, replies.error_body(401))
        elif path == "/v1/models" and request.method == "GET":
            reply.body = orjson.dumps(self._models())
        elif path not in PATHS or request.method != "POST":
            reply.refuse(404, replies.error_body(404, f"Not found: {request.method} {path}"))
        elif settings.model is not None and request.json.get("model") != settings.model:
            reply.refuse(404, replies.model_not_found(request.json.get("model", "")))
        elif refusal := self._refusal(request):
            reply.refuse(400, refusal)
        elif self._bucket and (wait := self._bucket.take()):
            reply.refuse(429, replies.error_body(429))
            reply.headers["Retry-After"] = str(int(wait) + 1)
        else:
            reply.body = orjson.dumps(self._answer_body(request, struck))

    def _models(self) -> dict[str, Any]:
        ids = [self.settings.model or "fake-model", *self.settings.models]
        extra = {"max_model_len": self.settings.max_model_len} if self.settings.max_model_len else {}
        return {"object": "list", "data": [{"id": id_, "object": "model", "owned_by": "fake", **extra} for id_ in ids]}

    def _refusal(self, request: Request) -> dict[str, Any] | None:
        other = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
        for name, instead in other.items():
            if name in self.settings.refuses and name in request.json:
                return replies.unsupported_parameter(name, None if instead in self.settings.refuses else instead)
        stops = request.json.get("stop")
        if "stops" in self.settings.refuses and isinstance(stops, list) and len(stops) > 4:
            return replies.too_many_stops(len(stops))
        tokens = len(request.prompt.split())
        if self.settings.max_model_len is not None and tokens > self.settings.max_model_len:
            return replies.context_too_long(self.settings.max_model_len, tokens)
        return None

    def _answer_body(self, request: Request, struck: list[Behaviour]) -> dict[str, Any]:
        shape = self.settings.shape
        for item in struck:
            shape = replace(shape, **item.shape)
        answer = self._text(request)
        if isinstance(answer, dict):
            return answer
        return replies.answer_body(request, answer, shape, request.json.get("model") or "fake-model")

    def _text(self, request: Request) -> str | dict[str, Any]:
        settings = self.settings
        if not isinstance(settings.answer, str):
            return settings.answer(request)
        match settings.mode:
            case "hash":
                return replies.prompt_hash(request.prompt)
            case "counter":
                return str(request.number)
            case "filler":
                return "x" * settings.size
            case "key":
                return replies.from_key(settings.answer_key, request.prompt, settings.answer)
            case _:
                return settings.answer

    def _constant_replies(self) -> dict[str, bytes]:
        """The whole answer on the wire for each path, made once."""
        made = {}
        for path in PATHS:
            request = Request(0, time.time(), "POST", path, b"", b'{"model": "fake-model"}')
            made[path] = Reply(body=orjson.dumps(self._answer_body(request, []))).wire()
        return made


def retry_after(value: float | str) -> str:
    if isinstance(value, str):
        return formatdate(time.time() + float(value), usegmt=True)
    return f"{value:g}"


@dataclass(slots=True)
class Reply:
    delay: float = 0.0
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    hang: str | None = None
    drop: str | None = None
    closes_silently: bool = False

    def refuse(self, status: int, body: dict[str, Any]) -> None:
        self.status, self.body = status, orjson.dumps(body)

    def wire(self) -> bytes:
        lines = {"Content-Type": "application/json", "Content-Length": str(len(self.body)), **self.headers}
        head = f"HTTP/1.1 {self.status} {REASONS.get(self.status, 'Status')}\r\n"
        return (head + "".join(f"{k}: {v}\r\n" for k, v in lines.items()) + "\r\n").encode() + self.body


class Connection(asyncio.Protocol):
    """One keep-alive connection. Requests that were sent ahead wait in the buffer, so answers keep their order."""

    def __init__(self, server: FakeServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._buffer = bytearray()
        self._is_busy = False
        self._reading = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance
        server = self._server
        server.connections.add(self)
        server.connections_opened += 1
        server.peak_connections = max(server.peak_connections, len(server.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.forget(self)
        if self._is_busy:
            self._server.in_flight -= 1
            self._is_busy = False

    def abort(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._is_busy:
            self._serve_buffered()

    def _serve_buffered(self) -> None:
        """A loop and not a recursion: a client may send thousands of requests ahead."""
        if self._reading:
            return
        self._reading = True
        while not self._is_busy and (taken := take_request(self._buffer)) is not None:
            self._serve(*taken)
        self._reading = False

    def _serve(self, method: str, path: str, head: bytes, body: bytes) -> None:
        server = self._server
        self._is_busy = True
        server.in_flight += 1
        request = Request(server.count, time.time(), method, path, head, body)
        if method == "POST" and not path.startswith("/__"):
            server.count += 1
            server.peak_in_flight = max(server.peak_in_flight, server.in_flight)
            if server.settings.logs:
                server.log.append(request)
            if (constant := server.constant.get(path)) is not None and not any(word in body for word in SHAPING):
                self._finish(request, 200, constant)
                return
        elif not path.startswith("/__"):
            server.other_log.append(request)
        reply = server.reply(request)
        if reply.delay:
            self._loop.call_later(reply.delay, self._carry_out, request, reply)
        else:
            self._carry_out(request, reply)

    def _carry_out(self, request: Request, reply: Reply) -> None:
        if reply.hang == "headers" or self._transport.is_closing():
            return
        if reply.drop == "headers":
            self._transport.abort()
            return
        wire = reply.wire()
        if reply.hang or reply.drop:
            self._transport.write(wire[: len(wire) - len(reply.body) // 2 - 1])
            if reply.drop:
                self._transport.close()
            return
        self._finish(request, reply.status, wire)
        if reply.closes_silently:
            self._transport.close()

    def _finish(self, request: Request, status: int, wire: bytes) -> None:
        server = self._server
        request.status = status
        if not request.path.startswith("/__"):
            server.statuses[status] += 1
        server.in_flight -= 1
        self._is_busy = False
        self._transport.write(wire)
        if self._buffer:
            self._serve_buffered()


def take_request(buffer: bytearray) -> tuple[str, str, bytes, bytes] | None:
    """Cuts one whole request from the front: method, path, head, body. None while it is incomplete."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = bytes(buffer[:end])
    length = 0
    if (at := head.lower().find(b"\r\ncontent-length:")) >= 0:
        stop = head.find(b"\r\n", at + 2)
        length = int(head[at + 17 : stop if stop >= 0 else None])
    if len(buffer) < end + 4 + length:
        return None
    body = bytes(buffer[end + 4 : end + 4 + length])
    del buffer[: end + 4 + length]
    method, path, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
    return method, path, head, body


async def serve(port: int, settings: Mapping[str, Any]) -> None:
    server = FakeServer()
    server.control(**settings)
    await server.start(port)
    print(f"url: {server.root}", flush=True)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0 takes any free one")
    names = ", ".join(item.name for item in fields(Settings))
    parser.add_argument("--settings", type=orjson.loads, default={}, help=f"JSON object with any of {names}")
    parser.add_argument("--answer-key", type=Path, help="JSON file: part of a prompt -> answer")
    parser.add_argument("--no-log", action="store_true", help="keep counts only")
    args = parser.parse_args()
    settings = dict(args.settings)
    if args.answer_key:
        settings |= {"answer_key": orjson.loads(args.answer_key.read_bytes()), "mode": "key"}
    if args.no_log:
        settings["logs"] = False
    run_until_interrupted(args.port, settings)


def run_until_interrupted(port: int, settings: Mapping[str, Any]) -> None:
    try:
        uvloop.run(serve(port, settings))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
