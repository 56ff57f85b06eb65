"""The text completion endpoint as a solver."""

from nemo_evaluator.solvers.model import ModelSolver
from nemo_evaluator.types import ModelResponse, SeedResult


class CompletionSolver(ModelSolver):
    """One /completions request a problem; a system prompt goes in front of the prompt."""

    protocol = "completions"

    async def _ask(self, task: SeedResult) -> ModelResponse:
        return await self.client.complete(task.prompt, self._system(task), seed=self._seed(task))
