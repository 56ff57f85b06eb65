"""The contract between the engine and whatever produces an answer."""

from abc import ABC, abstractmethod
from typing import Any

from nemo_evaluator.errors import UsageError
from nemo_evaluator.types import SeedResult, SolveResult


class Solver(ABC):
    """Turns a seeded problem into an answer. One instance serves many problems at once."""

    @abstractmethod
    async def solve(self, task: SeedResult) -> SolveResult:
        """Answer `task`. Raise `RequestError` (or return `SolveResult.error`) when there is no answer to score."""

    async def rest(self) -> None:
        """Give back connections that nobody uses; called after each run, and the solver may be asked again."""
        return

    async def close(self) -> None:
        """Give back everything, after the last run."""
        return

    def identity(self) -> dict[str, Any]:
        """Everything of this solver that changes an answer, JSON-friendly: a resumed run must have the same."""
        return {"solver": f"{type(self).__module__}.{type(self).__qualname__}"}

    def preview(self, task: SeedResult) -> dict[str, Any]:
        """What would be sent for `task`, for a dry run."""
        return {"prompt": task.prompt, "messages": task.messages, "system": task.system}

    def stats(self) -> dict[str, Any]:
        """Requests, retries and limiter state, for runtime_stats.json."""
        return {}

    @property
    def endpoint(self) -> str | None:
        """Where requests go, without userinfo or query values."""
        return None


def as_solver(solver: Any) -> Solver:
    """`solver` itself, or a wrapper round any object with an async `solve`. Raises UsageError for another."""
    if not callable(getattr(solver, "solve", None)):
        raise UsageError(f"A {type(solver).__name__} is no solver: it has no async method solve(task).")
    return solver if isinstance(solver, Solver) else _Adapted(solver)


class _Adapted(Solver):
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def solve(self, task: SeedResult) -> SolveResult:
        result: SolveResult = await self._inner.solve(task)
        return result

    def identity(self) -> dict[str, Any]:
        return {"solver": f"{type(self._inner).__module__}.{type(self._inner).__qualname__}"}
