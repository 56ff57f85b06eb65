"""A system message before what the harness asks."""

from typing import Any, Literal

from nemo_evaluator.proxy.exchange import Ask, Reply, Request


class SystemMessage:
    """In a chat before, after or in place of the harness's own system message; before the prompt of a completion."""

    def __init__(self, text: str, strategy: Literal["prepend", "append", "replace"]) -> None:
        self._text, self._strategy = text, strategy

    async def __call__(self, request: Request, ask: Ask) -> Reply:
        payload = request.payload
        if payload is not None and isinstance(payload.get("messages"), list):
            request = request.with_payload(payload | {"messages": self._led(payload["messages"])})
        elif payload is not None and isinstance(payload.get("prompt"), str):
            request = request.with_payload(payload | {"prompt": f"{self._text}\n\n{payload['prompt']}"})
        return await ask(request)

    async def close(self) -> None:
        """Nothing is held."""

    def _led(self, messages: list[Any]) -> list[Any]:
        own = [message for message in messages if _is_system(message)]
        texts = [message["content"] for message in own if isinstance(message.get("content"), str)]
        wanted = {"prepend": [self._text, *texts], "append": [*texts, self._text], "replace": [self._text]}
        said = {"role": "system", "content": "\n".join(wanted[self._strategy])}
        return [said, *(message for message in messages if not _is_system(message))]


def _is_system(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "system"
