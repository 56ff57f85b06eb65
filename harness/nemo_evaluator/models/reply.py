"""From the bytes of a reply to a ModelResponse, or to the failure they mean. Pure, and the same for every server."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from nemo_evaluator.errors import ErrorKind
from nemo_evaluator.models.payload import Protocol
from nemo_evaluator.models.retry import AttemptFailed, read_retry_after
from nemo_evaluator.types import ModelResponse

SHOWN_BYTES = 2048
"""Of a server's own words."""
RETRYABLE_STATUSES = frozenset({408, 409, 425, 429})
KEY_LIKE = re.compile(r"(?i:\bbearer\s+)[\w.~+/=*-]+|\b(?:sk|nvapi|hf|gsk|xai)[-_][\w*-]{8,}")
CONTEXT_LENGTH = re.compile(
    r"context.?(?:length|window|size)|maximum (?:context|sequence|input|prompt|model)|max_model_len"
    r"|(?:too (?:long|large|many tokens)|exceeds?|longer than).*(?:token|context|length|limit)|tokens?.*exceed",
    re.IGNORECASE | re.DOTALL,
)
CONTENT_FILTER = re.compile(
    r"content.?(?:filter|management|policy|moderation)|responsible.?ai|safety (?:system|filter|policy)|usage polic"
    r"|guardrail",
    re.IGNORECASE,
)
MODEL_NOT_FOUND = re.compile(
    r"model.{0,200}(?:not.?found|does not exist|not exist|unknown)|unknown.?model", re.IGNORECASE | re.DOTALL
)
BAD_KEY = re.compile(r"invalid.{0,10}api.?key|incorrect api key|unauthori[sz]ed|authentication", re.IGNORECASE)
FOR_EVER = re.compile(r"insufficient_quota|billing", re.IGNORECASE)
RATE_LIMIT = re.compile(r"rate.?limit|too many requests|quota", re.IGNORECASE)
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]")
INVALID = re.compile(r"invalid|unsupported|bad.?request|validation", re.IGNORECASE)
FEW_LOGPROBS = 3
"""So many that differ not at all were never computed."""
OPENING_THINK, CLOSING_THINK = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class Reading:
    """What has to be known about a request to read its reply."""

    protocol: Protocol = "chat"
    stop: tuple[str, ...] = ()
    reasoning_pattern: re.Pattern[str] | None = None
    secrets: tuple[str, ...] = ()
    must_echo: bool = False
    """The prompt's own log-probabilities were asked for."""


def read_reply(status: int, headers: Mapping[str, str], body: bytes, reading: Reading) -> ModelResponse:
    if not 200 <= status < 300:
        raise refusal(status, headers, body, reading.secrets)
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise bad_reply(what_came_instead(headers, body), body, reading.secrets) from None
    if not isinstance(data, dict):
        raise bad_reply("a reply that is no JSON object", body, reading.secrets)
    if data.get("error"):
        raise error_in_success(data["error"], headers, body, reading.secrets)
    try:
        return to_response(data, reading)
    except Misshapen as error:
        raise bad_reply(str(error), body, reading.secrets) from None
    except (AttributeError, TypeError, KeyError):
        raise bad_reply("JSON of another shape than the OpenAI API's", body, reading.secrets) from None


class Misshapen(ValueError):
    """The JSON is not that of a chat completion or a completion."""


def to_response(data: dict[str, Any], reading: Reading) -> ModelResponse:
    choice = first_choice(data)
    if choice.get("error"):
        raise error_in_success(choice["error"], {}, b"", reading.secrets)
    finish_reason = str(choice.get("finish_reason") or "")
    if finish_reason == "content_filter":
        raise AttemptFailed("content_filter", "the server withheld the answer (finish_reason content_filter)")
    if reading.protocol == "chat":
        content, reasoning = chat_text(choice)
    else:
        content, reasoning = text_of(choice.get("text")), None
    if reading.reasoning_pattern is not None:
        content, reasoning = strip_reasoning(content, reasoning, reading.reasoning_pattern)
    if reading.must_echo:
        check_echo(choice, data.get("usage") or {})
    elif reading.stop and (end := stop_position(content, reading.stop)) is not None:
        content, finish_reason = content[:end], "stop"
    usage = data.get("usage") or {}
    return ModelResponse(
        content=content,
        model=str(data.get("model") or ""),
        finish_reason=finish_reason,
        prompt_tokens=count(usage, "prompt_tokens"),
        completion_tokens=count(usage, "completion_tokens"),
        total_tokens=count(usage, "total_tokens"),
        reasoning_tokens=count(usage.get("completion_tokens_details") or usage, "reasoning_tokens"),
        raw_response=data,
        reasoning_content=reasoning,
    )


def count(usage: Mapping[str, Any], name: str) -> int | None:
    value = usage.get(name)
    return int(value) if isinstance(value, int | float) else None


def first_choice(data: dict[str, Any]) -> dict[str, Any]:
    """The choice of index 0, wherever it stands."""
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices:
        raise Misshapen("a reply without choices")
    choice = choices[0] if len(choices) == 1 else min(choices, key=lambda item: item.get("index", 0))
    if not isinstance(choice, dict):
        raise Misshapen("a choice that is no object")
    return choice


def chat_text(choice: dict[str, Any]) -> tuple[str, str | None]:
    message = choice.get("message")
    if not isinstance(message, dict):
        raise Misshapen("a choice without message")
    content = message.get("content")
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    return content if isinstance(content, str) else text_of(content), text_of(reasoning) if reasoning else None


def text_of(content: Any) -> str:
    """Text, null or a list of parts -> text."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list):
        return "".join(part if isinstance(part, str) else part.get("text") or "" for part in content)
    raise Misshapen(f"content of type {type(content).__name__}")


def strip_reasoning(content: str, reasoning: str | None, pattern: re.Pattern[str]) -> tuple[str, str | None]:
    found = [match.group() for match in pattern.finditer(content)]
    if not found:
        return content, reasoning
    return pattern.sub("", content).lstrip(), reasoning or "\n".join(found)


def stop_position(content: str, stop: Iterable[str]) -> int | None:
    """Where the earliest stop string begins in the final answer; thinking that leads the content is not searched."""
    start = end_of_thinking(content)
    hits = [at for text in stop if (at := content.find(text, start)) >= 0]
    return min(hits, default=None)


def end_of_thinking(content: str) -> int:
    """0 without thinking. Some chat templates write the opening tag themselves, so a closing one is enough."""
    if (at := content.find(CLOSING_THINK)) >= 0:
        return at + len(CLOSING_THINK)
    return len(content) if content.lstrip().startswith(OPENING_THINK) else 0


def check_echo(choice: dict[str, Any], usage: Mapping[str, Any]) -> None:
    """A server that ignores `echo` returns only what it generated: every multiple choice then scores chance."""
    values = (choice.get("logprobs") or {}).get("token_logprobs") or []
    needs = "the server does not implement echo with logprobs, which log-probability benchmarks need"
    if not values or values[0] is not None:
        raise AttemptFailed("bad_reply", f"{needs}: the reply does not begin with the prompt's own tokens")
    told = [value for value in values if value is not None]
    if len(told) >= FEW_LOGPROBS and len(set(told)) == 1:
        raise AttemptFailed("bad_reply", f"{needs}: every log-probability is {told[0]}")
    expected = count(usage, "prompt_tokens")
    if expected is not None and len(values) not in (expected, expected + (count(usage, "completion_tokens") or 0)):
        raise AttemptFailed("bad_reply", f"{needs}: {len(values)} log-probabilities for {expected} prompt tokens")


# Failures


def refusal(status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str]) -> AttemptFailed:
    error = error_object(body)
    kind = kind_of_status(status, words_of(error) or text_shown(body))
    said = mask(words_of(error, "message") or text_shown(body), secrets)
    if 300 <= status < 400:
        said = mask(f"redirects to {headers.get('Location', 'nowhere')}; give that address as the model URL", secrets)
    return AttemptFailed(
        kind,
        f"HTTP {status}: {said or 'the server said nothing more'}",
        status=status,
        is_transient=is_transient_status(status) and not FOR_EVER.search(words_of(error)),
        retry_after=read_retry_after(headers),
    )


def error_in_success(error: Any, headers: Mapping[str, str], body: bytes, secrets: Iterable[str]) -> AttemptFailed:
    """`{"error": …}` with status 200: gateways do that. Only the object itself says what it means."""
    words = words_of(error)
    status = status_within(error)
    kind = kind_of_status(status, words) if status else kind_of_words(words)
    is_transient = (
        is_transient_status(status) if status else kind in ("server", "rate_limit") and not INVALID.search(words)
    )
    return AttemptFailed(
        kind,
        f"HTTP 200 with an error: {mask(words_of(error, 'message') or text_shown(body), secrets)}",
        status=status or 200,
        is_transient=is_transient and not FOR_EVER.search(words),
        retry_after=read_retry_after(headers),
    )


def bad_reply(what: str, body: bytes, secrets: Iterable[str]) -> AttemptFailed:
    shown = mask(text_shown(body), secrets)
    return AttemptFailed("bad_reply", f"{what}: {shown}" if shown else what, status=200, is_transient=True)


def what_came_instead(headers: Mapping[str, str], body: bytes) -> str:
    if not body.strip():
        return "an empty reply"
    if body.lstrip().startswith(b"<") or "html" in headers.get("Content-Type", ""):
        return "a web page instead of JSON (is this the URL of the API?)"
    return "JSON that is cut off or broken"


def kind_of_status(status: int, words: str) -> ErrorKind:
    if status in (400, 403, 422) and CONTENT_FILTER.search(words):
        return "content_filter"
    if status in (400, 413, 422) and CONTEXT_LENGTH.search(words):
        return "context_length"
    if status in (401, 403):
        return "auth"
    if status == 404 or 300 <= status < 400 or (status == 400 and MODEL_NOT_FOUND.search(words)):
        return "not_found"
    if status == 429:
        return "rate_limit"
    return "timeout" if status in (408, 504) else "server"


def kind_of_words(words: str) -> ErrorKind:
    patterns: tuple[tuple[re.Pattern[str], ErrorKind], ...] = (
        (CONTENT_FILTER, "content_filter"),
        (CONTEXT_LENGTH, "context_length"),
        (MODEL_NOT_FOUND, "not_found"),
        (BAD_KEY, "auth"),
        (RATE_LIMIT, "rate_limit"),
    )
    return next((kind for pattern, kind in patterns if pattern.search(words)), "server")


def is_transient_status(status: int) -> bool:
    return status in RETRYABLE_STATUSES or status >= 500


def error_object(body: bytes) -> Any:
    """The part of an error body that speaks, in any of the shapes that servers use."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(data, dict):
        return None
    return data.get("error") or data.get("detail") or data


def words_of(error: Any, *names: str) -> str:
    """All that an error object says (or only the named fields), for matching and for people."""
    if isinstance(error, dict):
        values = [error.get(name) for name in names or ("message", "type", "code", "param")]
        return " ".join(str(value) for value in values if value)
    return error if isinstance(error, str) else ""


def status_within(error: Any) -> int | None:
    """An HTTP status that the error object names itself."""
    if not isinstance(error, dict):
        return None
    for name in ("code", "status", "status_code"):
        value = str(error.get(name))
        if value.isdecimal() and 400 <= int(value) <= 599:
            return int(value)
    return None


def text_shown(body: bytes) -> str:
    return body[:SHOWN_BYTES].decode("utf-8", "replace")


def mask(text: str, secrets: Iterable[str]) -> str:
    """One line without secrets, and without what would move the cursor of a terminal."""
    text = " ".join(UNPRINTABLE.sub(" ", text).split())
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    return KEY_LIKE.sub("***", text)[:SHOWN_BYTES]
