"""A system message before what the harness asks."""

from typing import Any

from nemo_evaluator.proxy.exchange import Ask, Reply, Request


class SystemMessage:
    """Replaces the system message of a chat; stands before the prompt of a completion."""

    def __init__(self, text: str) -> None:
        self._text = text

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
        rest = [message for message in messages if not (isinstance(message, dict) and message.get("role") == "system")]
        return [{"role": "system", "content": self._text}, *rest]
