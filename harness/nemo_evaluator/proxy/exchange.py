"""What passes through the proxy: a request on its way up, a reply on its way down."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import orjson

from nemo_evaluator.models.call import to_bytes


@dataclass(slots=True)
class Request:
    """As the harness sent it, or as an interceptor changed it. Never changed in place: a retry asks the same again."""

    method: str
    path: str
    """With the query."""
    raw: bytes
    payload: dict[str, Any] | None
    """None for a body that is no JSON object: it is passed on untouched."""

    @classmethod
    def read(cls, method: str, path: str, raw: bytes) -> Self:
        try:
            payload = orjson.loads(raw) if raw else None
        except orjson.JSONDecodeError:
            payload = None
        return cls(method, path, raw, payload if isinstance(payload, dict) else None)

    def with_payload(self, payload: dict[str, Any]) -> "Request":
        return Request(self.method, self.path, to_bytes(payload), payload)

    @property
    def is_stream(self) -> bool:
        return bool(self.payload and self.payload.get("stream"))


@dataclass(slots=True)
class Reply:
    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    """Beside the content type, those that a harness may act on."""
    chunks: AsyncIterator[bytes] | None = None
    """Of a stream, instead of the body."""
    is_cached: bool = False
    seconds: float = 0.0
    """The endpoint's own time for it; 0 for an answer from the cache."""
    attempts: int = 1

    def json(self) -> dict[str, Any] | None:
        try:
            data = orjson.loads(self.body) if self.body else None
        except orjson.JSONDecodeError:
            return None
        return data if isinstance(data, dict) else None

    def with_json(self, data: Mapping[str, Any]) -> "Reply":
        return replace(self, body=to_bytes(dict(data)))

    @classmethod
    def error(cls, status: int, message: str) -> Self:
        return cls(status, orjson.dumps({"error": {"message": message, "code": status}}))


Ask = Callable[[Request], Awaitable[Reply]]
"""The rest of the way up, and back."""


class Interceptor(Protocol):
    async def __call__(self, request: Request, ask: Ask) -> Reply: ...

    async def close(self) -> None: ...


def chained(interceptors: list[Interceptor], ask: Ask) -> Ask:
    """The first interceptor sees a request first and its reply last."""
    for interceptor in reversed(interceptors):
        ask = _bound(interceptor, ask)
    return ask


def _bound(interceptor: Interceptor, ask: Ask) -> Ask:
    def intercepted(request: Request) -> Awaitable[Reply]:
        return interceptor(request, ask)

    return intercepted
