"""What chat and completion solvers share: one model behind one client."""

from typing import Any

from nemo_evaluator.models import ModelClient
from nemo_evaluator.models.payload import Protocol, redact_url
from nemo_evaluator.solvers.base import Solver
from nemo_evaluator.types import ModelResponse, SeedResult, SolveResult


class ModelSolver(Solver):
    """One request a problem. A system prompt given here replaces the benchmark's own."""

    protocol: Protocol

    def __init__(self, client: ModelClient, system_prompt: str | None = None) -> None:
        self.client = client
        self.system_prompt = system_prompt
        self._first_seed: int | None = client.generation.get("seed")

    async def solve(self, task: SeedResult) -> SolveResult:
        reply = await self._ask(task)
        return SolveResult(response=reply.content, model_response=reply)

    async def _ask(self, task: SeedResult) -> ModelResponse:
        raise NotImplementedError

    async def rest(self) -> None:
        await self.client.rest()

    async def close(self) -> None:
        await self.client.close()

    def identity(self) -> dict[str, Any]:
        return {
            "solver": self.protocol,
            "model": self.client.model,
            "system_prompt": self.system_prompt,
            "generation": self.client.generation,
        }

    def preview(self, task: SeedResult) -> dict[str, Any]:
        return self.client.payload(
            self.protocol, task.prompt, self._system(task), messages=task.messages, seed=self._seed(task)
        )

    def stats(self) -> dict[str, Any]:
        return self.client.stats()

    @property
    def endpoint(self) -> str:
        return redact_url(self.client.url(self.protocol))

    def _system(self, task: SeedResult) -> str | None:
        return task.system if self.system_prompt is None else self.system_prompt

    def _seed(self, task: SeedResult) -> int | None:
        """Each repeat samples with a seed of its own, or n repeats would be n copies of one answer."""
        return None if self._first_seed is None else self._first_seed + task.repeat
