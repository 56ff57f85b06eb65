"""What is known of every attempt of a run: some forty bytes each, whatever the answers weigh."""

import math
from array import array
from collections import Counter
from collections.abc import Iterator

from nemo_evaluator.engine.plan import Attempt, Plan
from nemo_evaluator.errors import ERROR_KINDS

NOT_ASKED, ANSWERED, TRUNCATED, EMPTY = "not_asked", "answered", "truncated", "empty"
SCORED, SCORER_ERROR = "scored", "error:scorer"
ERRORS = tuple(f"error:{kind}" for kind in ERROR_KINDS)
_CODES = {state: code for code, state in enumerate((NOT_ASKED, ANSWERED, TRUNCATED, EMPTY, *ERRORS))}
_STATES = tuple(_CODES)


class Ledger:
    """Answers and scores of a plan, as places in the journal's files. `reward` is NaN until a sample has a score."""

    def __init__(self, plan: Plan) -> None:
        n = len(plan)
        self.plan = plan
        self.answer_at, self.answer_length = array("q", bytes(8 * n)), array("q", bytes(8 * n))
        self.score_at, self.score_length = array("q", bytes(8 * n)), array("q", bytes(8 * n))
        self.reward = array("d", [math.nan]) * n
        self._answer = bytearray(n)
        self._score_failed = bytearray(n)

    def answered(self, ordinal: int, state: str, offset: int, length: int) -> None:
        """An answer, or a request error, was journaled; it forgets the score of an older answer."""
        self._answer[ordinal] = _CODES[state]
        self.answer_at[ordinal], self.answer_length[ordinal] = offset, length
        self.reward[ordinal], self._score_failed[ordinal], self.score_length[ordinal] = math.nan, 0, 0

    def scored(self, ordinal: int, reward: float | None, offset: int, length: int) -> None:
        """A score was journaled; None when the scorer failed."""
        self.score_at[ordinal], self.score_length[ordinal] = offset, length
        self._score_failed[ordinal] = reward is None
        self.reward[ordinal] = math.nan if reward is None else reward

    def state(self, ordinal: int) -> str:
        """not_asked, answered (no score yet), scored, truncated, empty or error:<kind>."""
        answer = _STATES[self._answer[ordinal]]
        if answer == NOT_ASKED or answer.startswith("error:"):
            return answer
        if self._score_failed[ordinal]:
            return SCORER_ERROR
        if math.isnan(self.reward[ordinal]):
            return ANSWERED
        return SCORED if answer == ANSWERED else answer

    def states(self) -> Counter[str]:
        return Counter(self.state(ordinal) for ordinal in range(len(self.plan)))

    def to_ask(self) -> Iterator[Attempt]:
        """Attempts without an answer, those that ended in an error included."""
        return (attempt for attempt in self.plan if not self._has_answer(attempt.ordinal))

    def to_verify(self) -> list[Attempt]:
        """Attempts whose answer has no score, those whose scorer failed included."""
        return [a for a in self.plan if self._has_answer(a.ordinal) and math.isnan(self.reward[a.ordinal])]

    def _has_answer(self, ordinal: int) -> bool:
        return _STATES[self._answer[ordinal]] in (ANSWERED, TRUNCATED, EMPTY)
