"""A benchmark whose right answers are known, and solvers that need no endpoint."""

import asyncio
import re

from nemo_evaluator.environments import EvalEnvironment, SeedResult, VerifyResult
from nemo_evaluator.solvers import Solver, SolveResult


class Doubles(EvalEnvironment):
    """Problem i asks for i + i."""

    def __init__(self, size: int = 10, prompt: str = "Problem {i}: what is {i} + {i}?") -> None:
        super().__init__()
        self.size, self.prompt = size, prompt
        self.seeded: list[int] = []
        self.verified: list[int] = []

    def __len__(self) -> int:
        return self.size

    async def seed(self, idx: int) -> SeedResult:
        self.seeded.append(idx)
        return SeedResult(self.prompt.format(i=idx), str(2 * idx), {"category": "even" if idx % 2 == 0 else "odd"})

    async def verify(self, response: str, expected: str, **metadata: object) -> VerifyResult:
        self.verified.append(int(expected) // 2)
        found = re.findall(r"\d+", response)
        answer = found[-1] if found else None
        return VerifyResult(
            float(answer == expected), answer, {"method": "last_number", "category": metadata["category"]}
        )


class Calculator(Solver):
    """Answers Doubles rightly, except the problems in `wrong`; knows how many it has in hand."""

    def __init__(self, wrong: frozenset[int] = frozenset(), delay: float = 0.0, name: str = "calculator") -> None:
        self.wrong, self.delay, self.name = wrong, delay, name
        self.asked: list[int] = []
        self.in_hand = self.most_in_hand = 0

    async def solve(self, task: SeedResult) -> SolveResult:
        number = problem_of(task.prompt)
        self.asked.append(number)
        self.in_hand += 1
        self.most_in_hand = max(self.most_in_hand, self.in_hand)
        await asyncio.sleep(self.delay)
        self.in_hand -= 1
        return SolveResult(f"The answer is {2 * number + (number in self.wrong)}.")

    def identity(self) -> dict[str, object]:
        return {"solver": self.name}


def problem_of(prompt: str) -> int:
    return int(re.search(r"\d+", prompt)[0])


def right_answer(request: object) -> str:
    """For a FakeServer: what a good model says to a problem of Doubles."""
    return f"The answer is {2 * problem_of(request.prompt)}."  # type: ignore[attr-defined]
