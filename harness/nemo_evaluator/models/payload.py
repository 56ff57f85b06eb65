"""From a question to the body of a request. Pure: what is sent can be shown without sending it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args
from urllib.parse import SplitResult, parse_qsl, quote, urlsplit, urlunsplit

from nemo_evaluator.errors import UsageError

Protocol = Literal["chat", "completions"]
Messages = Sequence[Mapping[str, Any]]
TokenField = Literal["max_tokens", "max_completion_tokens"]

TOKEN_FIELDS = frozenset(get_args(TokenField))
PATHS: dict[Protocol, str] = {"chat": "/chat/completions", "completions": "/completions"}
LEAST_STOPS = 4
"""The OpenAI API takes this many stop strings; others take more."""
UNSUPPORTED = re.compile(
    r"unsupported|unrecognized|unknown|unexpected|not (?:be )?(?:supported|permitted|allowed|recognized)"
    r"|extra (?:inputs|fields)|use '?max_(?:completion_)?tokens'? instead",
    re.IGNORECASE,
)
TOO_MANY_STOPS = re.compile(
    r"too (?:long|many)|(?:maximum|max|at most|up to|more than|no more than)\D{0,30}\d+", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Generation:
    """How an answer is sampled; None leaves the choice to the server."""

    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    """Sent as it is, over everything else."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What an endpoint's refusals have taught about the parameters it takes for one model."""

    token_field: TokenField | None = "max_tokens"
    """None: it takes no limit at all."""
    refused_fields: frozenset[str] = frozenset()
    max_stops: int | None = None

    def learn(self, status: int, message: str, body: Mapping[str, Any]) -> "Dialect | None":
        """The dialect to use from now on, or None when the refusal teaches nothing about `body`."""
        if status not in (400, 422):
            return None
        return self._learn_stops(message, body) or self._learn_token_field(message, body)

    def _learn_stops(self, message: str, body: Mapping[str, Any]) -> "Dialect | None":
        stops = body.get("stop") or ()
        if len(stops) <= LEAST_STOPS or not re.search(r"\bstop\b", message) or not TOO_MANY_STOPS.search(message):
            return None
        return replace(self, max_stops=LEAST_STOPS)

    def _learn_token_field(self, message: str, body: Mapping[str, Any]) -> "Dialect | None":
        sent = self.token_field
        if sent is None or sent not in body or not re.search(rf"\b{sent}\b", message):
            return None
        if not UNSUPPORTED.search(message):
            return None
        refused = self.refused_fields | {sent}
        other: TokenField = "max_completion_tokens" if sent == "max_tokens" else "max_tokens"
        return replace(self, token_field=None if other in refused else other, refused_fields=refused)

    def to_dict(self) -> dict[str, Any]:
        return {"token_field": self.token_field, "max_stops": self.max_stops}


def generation_fields(generation: Generation, dialect: Dialect) -> dict[str, Any]:
    """The parameters as this endpoint takes them."""
    fields: dict[str, Any] = {
        "temperature": generation.temperature,
        "top_p": generation.top_p,
        "seed": generation.seed,
        "stop": list(generation.stop[: dialect.max_stops]) or None,
        "frequency_penalty": generation.frequency_penalty,
        "presence_penalty": generation.presence_penalty,
    }
    if dialect.token_field is not None and not TOKEN_FIELDS & generation.extra_body.keys():
        fields[dialect.token_field] = generation.max_tokens
    given = {name: value for name, value in fields.items() if value is not None}
    return {**given, **generation.extra_body}


def chat_messages(prompt: str, system: str | None, messages: Messages | None) -> list[dict[str, Any]]:
    """A system prompt takes the place of the one that leads `messages`: many chat templates refuse two."""
    asked = [dict(message) for message in messages] if messages is not None else [{"role": "user", "content": prompt}]
    if system is None:
        return asked
    if asked and asked[0].get("role") in ("system", "developer"):
        asked = asked[1:]
    return [{"role": "system", "content": system}, *asked]


def completion_prompt(prompt: str, system: str | None) -> str:
    return prompt if system is None else f"{system}\n\n{prompt}"


def endpoint_url(base: str, protocol: Protocol) -> str:
    """`http://host`, `…/v1`, `…/v1/chat/completions`, with or without a slash at the end: all mean one endpoint."""
    return resource_url(base, PATHS[protocol])


def resource_url(base: str, resource: str) -> str:
    parts = split_url(base)
    path = parts.path.rstrip("/")
    root = path
    for ending in ("/chat/completions", "/completions", "/models"):
        root = root.removesuffix(ending)
    if not path:
        root = "/v1"
    return urlunsplit(parts._replace(path=root + resource))


def split_url(url: str) -> SplitResult:
    shown = redact_url(url)
    if re.search(r"[\s\x00-\x1f\x7f\"'<>\\^`{|}]", url):
        raise UsageError(f"The model URL {shown!r} holds a character that no URL has. Give it as http://HOST:PORT/v1.")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UsageError(f"The model URL {shown!r} is not valid ({error}). Give it as http://HOST:PORT/v1.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"The model URL {shown!r} must start with http:// or https:// and name a host.")
    if "://" in parts.path or parts.fragment or parts.hostname in ("http", "https"):
        raise UsageError(f"The model URL {shown!r} is not one URL. Give it as http://HOST:PORT/v1.")
    return parts


def redact_url(url: str) -> str:
    """For logs and results: no user, no password, no value of a query."""
    head, mark, query = url.partition("?")
    head = re.sub(r"//[^/@]*@", "//***@", head)
    if not mark:
        return head
    return head + "?" + "&".join(f"{quote(name)}=***" for name, _ in parse_qsl(query, keep_blank_values=True))
