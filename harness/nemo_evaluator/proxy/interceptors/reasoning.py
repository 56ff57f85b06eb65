"""Reasoning apart from the answer, so that a scorer sees only the answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nemo_evaluator.proxy.exchange import Ask, Reply, Request


@dataclass(slots=True)
class ReasoningCounts:
    total_responses: int = 0
    responses_with_reasoning: int = 0
    reasoning_finished_count: int = 0
    reasoning_unfinished_count: int = 0
    reasoning_characters: int = 0
    answer_characters: int = 0


class Reasoning:
    """Moves what stands before the end token from `content` to `reasoning_content`. A server that separates it itself
    is only counted."""

    def __init__(self, start: str | None, end: str, keeps_unfinished: bool) -> None:
        self._start, self._end, self._keeps_unfinished = start, end, keeps_unfinished
        self.counts = ReasoningCounts()

    async def __call__(self, request: Request, ask: Ask) -> Reply:
        reply = await ask(request)
        if reply.status != 200 or reply.chunks is not None:
            return reply
        data = reply.json()
        choices = (data or {}).get("choices")
        if data is None or not isinstance(choices, list):
            return reply
        return reply.with_json(data | {"choices": [self._separated(choice) for choice in choices]})

    async def close(self) -> None:
        """Nothing is held."""

    def _separated(self, choice: Any) -> Any:
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict) or not isinstance(message.get("content"), str):
            return choice
        return choice | {"message": self._message(message)}

    def _message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        content = message["content"]
        self.counts.total_responses += 1
        thought, end, answer = content.partition(self._end)
        if end:
            self._count(len(thought), len(answer), is_finished=True)
            return {**message, "content": answer.lstrip(), "reasoning_content": self._without_start(thought).strip()}
        if self._start and content.lstrip().startswith(self._start):
            self._count(len(content), 0, is_finished=False)
            return dict(message) if self._keeps_unfinished else {**message, "content": ""}
        own = message.get("reasoning_content") or message.get("reasoning")
        if isinstance(own, str):
            self._count(len(own), len(content), is_finished=bool(content))
        return dict(message)

    def _without_start(self, thought: str) -> str:
        return thought.lstrip().removeprefix(self._start) if self._start else thought

    def _count(self, thought: int, answer: int, *, is_finished: bool) -> None:
        self.counts.responses_with_reasoning += 1
        self.counts.reasoning_characters += thought
        self.counts.answer_characters += answer
        if is_finished:
            self.counts.reasoning_finished_count += 1
        else:
            self.counts.reasoning_unfinished_count += 1
