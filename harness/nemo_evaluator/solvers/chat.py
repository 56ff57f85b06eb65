"""The chat endpoint as a solver."""

from nemo_evaluator.solvers.model import ModelSolver
from nemo_evaluator.types import ModelResponse, SeedResult


class ChatSolver(ModelSolver):
    """One /chat/completions request a problem."""

    protocol = "chat"

    async def _ask(self, task: SeedResult) -> ModelResponse:
        return await self.client.chat(task.prompt, self._system(task), messages=task.messages, seed=self._seed(task))
