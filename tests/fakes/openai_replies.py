"""What the fake OpenAI-compatible server says: pure functions from a request to a status and a body."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

HTML = "<html><head><title>Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"
PIECE = re.compile(r"\s*\S+")


@dataclass(slots=True)
class Request:
    """One request as it came; everything beyond the bytes is worked out when somebody looks."""

    number: int
    time: float
    method: str
    path: str
    head: bytes
    body: bytes
    status: int | None = None
    _json: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def headers(self) -> dict[str, str]:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}

    @property
    def json(self) -> dict[str, Any]:
        if self._json is None:
            self._json = orjson.loads(self.body) if self.body else {}
        return self._json

    @property
    def is_chat(self) -> bool:
        return self.path.partition("?")[0].endswith("/chat/completions")

    @property
    def prompt(self) -> str:
        """All text that was sent, for matching: every message of a chat, system prompt included."""
        if not self.is_chat:
            return str(self.json.get("prompt", ""))
        return "\n".join(flat(message.get("content")) for message in self.json.get("messages", []))

    def entry(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "time": self.time,
            "method": self.method,
            "path": self.path,
            "headers": self.headers,
            "body": self.json,
            "status": self.status,
        }


AnswerFunction = Callable[[Request], "str | dict[str, Any]"]
"""Returns the text of the answer, or a whole reply body."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a good answer is dressed. Servers differ in all of it."""

    finish_reason: str = "stop"
    content: Literal["text", "null", "parts", "no_message"] = "text"
    reasoning: str | None = None
    reasoning_fields: tuple[str, ...] = ("reasoning_content",)
    usage: Mapping[str, Any] | Literal["counted", "missing"] = "counted"
    echo: Literal["honoured", "ignored", "extra", "zeros"] = "honoured"
    stops: Literal["cut", "kept", "ignored"] = "cut"


def flat(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def prompt_hash(prompt: str) -> str:
    """The answer of mode `hash`: proves that an answer belongs to its prompt."""
    return hashlib.sha256(prompt.encode()).hexdigest()[:16]


def from_key(answers: Mapping[str, str], prompt: str, default: str) -> str:
    """The answer whose key is found in the prompt; the longest key wins, so that keys may contain one another."""
    found = [key for key in answers if key in prompt]
    return answers[max(found, key=len)] if found else default


def answer_body(request: Request, text: str, shape: Shape, model: str) -> dict[str, Any]:
    text = apply_stops(text, request.json.get("stop") or [], shape.stops)
    choice = chat_choice(text, shape) if request.is_chat else completion_choice(request, text, shape)
    body: dict[str, Any] = {
        "id": f"fake-{request.number}",
        "object": "chat.completion" if request.is_chat else "text_completion",
        "created": int(request.time),
        "model": model,
        "choices": [choice],
    }
    if shape.usage != "missing":
        body["usage"] = usage(request, text, shape)
    return body


def apply_stops(text: str, stops: str | list[str], mode: str) -> str:
    stops = [stops] if isinstance(stops, str) else stops
    hits = [(text.find(stop), stop) for stop in stops if stop in text]
    if not hits or mode == "ignored":
        return text
    at, stop = min(hits)
    return text[: at + len(stop)] if mode == "kept" else text[:at]


def chat_choice(text: str, shape: Shape) -> dict[str, Any]:
    choice: dict[str, Any] = {"index": 0, "finish_reason": shape.finish_reason, "logprobs": None}
    if shape.content == "no_message":
        return choice
    contents = {"text": text, "null": None, "parts": [{"type": "text", "text": text}]}
    choice["message"] = {"role": "assistant", "content": contents[shape.content]}
    if shape.reasoning is not None:
        choice["message"] |= dict.fromkeys(shape.reasoning_fields, shape.reasoning)
    return choice


def completion_choice(request: Request, text: str, shape: Shape) -> dict[str, Any]:
    asked = request.json
    max_tokens = asked.get("max_tokens", 16)
    generated = PIECE.findall(text)[:max_tokens] if asked.get("echo") else PIECE.findall(text)
    echoed = PIECE.findall(asked.get("prompt", "")) if asked.get("echo") and shape.echo != "ignored" else []
    choice: dict[str, Any] = {
        "index": 0,
        "text": "".join(echoed + generated) if asked.get("echo") else text,
        "finish_reason": shape.finish_reason,
        "logprobs": None,
    }
    if asked.get("logprobs") is not None:
        extra = ["<extra>"] if shape.echo == "extra" else []
        choice["logprobs"] = logprobs(echoed + generated + extra, starts_with_prompt=bool(echoed))
        if shape.echo == "zeros":
            choice["logprobs"]["token_logprobs"] = [None] + [0.0] * (len(echoed + generated) - 1)
    return choice


def logprobs(tokens: list[str], *, starts_with_prompt: bool) -> dict[str, Any]:
    """The legacy shape: nothing comes before the first token of a prompt, so it has no probability."""
    values: list[float | None] = [-0.01 - (hash_of(token) % 500) / 100 for token in tokens]
    if starts_with_prompt and values:
        values[0] = None
    offsets = [sum(map(len, tokens[:n])) for n in range(len(tokens))]
    top = [None if value is None else {token: value} for token, value in zip(tokens, values, strict=True)]
    return {"tokens": tokens, "token_logprobs": values, "top_logprobs": top, "text_offset": offsets}


def hash_of(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def usage(request: Request, text: str, shape: Shape) -> dict[str, Any]:
    if isinstance(shape.usage, Mapping):
        return dict(shape.usage)
    prompt_tokens = len(PIECE.findall(request.prompt))
    completion_tokens = len(PIECE.findall(text))
    if request.json.get("echo"):
        completion_tokens = min(completion_tokens, request.json.get("max_tokens", 16))
    reasoning_tokens = len(PIECE.findall(shape.reasoning or ""))
    counts: dict[str, Any] = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens + reasoning_tokens,
        "total_tokens": prompt_tokens + completion_tokens + reasoning_tokens,
    }
    if reasoning_tokens:
        counts["completion_tokens_details"] = {"reasoning_tokens": reasoning_tokens}
    return counts


def error_body(status: int, message: str | None = None, code: str | None = None, **extra: Any) -> dict[str, Any]:
    default_messages = {
        401: "Incorrect API key provided.",
        403: "You have no access to this resource.",
        404: "Not found.",
        429: "Rate limit reached, please slow down.",
        503: "The server is overloaded.",
    }
    message = message or default_messages.get(status, f"The server says {status}.")
    return {"error": {"message": message, "type": "fake_error", "code": code or status, **extra}}


def model_not_found(model: str) -> dict[str, Any]:
    return error_body(404, f"The model `{model}` does not exist.", "model_not_found", param="model")


def unsupported_parameter(name: str, instead: str | None) -> dict[str, Any]:
    hint = f" Use '{instead}' instead." if instead else ""
    message = f"Unsupported parameter: '{name}' is not supported with this model.{hint}"
    return error_body(400, message, "unsupported_parameter", param=name)


def too_many_stops(count: int) -> dict[str, Any]:
    message = f"Invalid 'stop': array too long. Expected an array with maximum length 4, but got {count} instead."
    return error_body(400, message, "array_above_max_length", param="stop")


def context_too_long(limit: int, tokens: int) -> dict[str, Any]:
    message = (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted in {tokens} tokens."
    )
    return error_body(400, message, "context_length_exceeded", param="messages")
