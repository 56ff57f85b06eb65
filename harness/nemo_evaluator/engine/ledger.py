"""What is known of every attempt of a run: some forty bytes each, whatever the answers weigh."""

import math
from array import array
from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from nemo_evaluator.engine.plan import Attempt, Plan
from nemo_evaluator.errors import ERROR_KINDS

NOT_ASKED, ANSWERED, TRUNCATED, EMPTY = "not_asked", "answered", "truncated", "empty"
SCORED, SCORER_ERROR = "scored", "error:scorer"
_STATES = (NOT_ASKED, ANSWERED, TRUNCATED, EMPTY, SCORED, *(f"error:{kind}" for kind in ERROR_KINDS))
_CODES = {state: code for code, state in enumerate(_STATES)}
_HAS_ANSWER = tuple(_CODES[state] for state in (ANSWERED, TRUNCATED, EMPTY))


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
        answer = self._answer[ordinal]
        if answer not in _HAS_ANSWER:
            return _STATES[answer]
        if self._score_failed[ordinal]:
            return SCORER_ERROR
        if math.isnan(self.reward[ordinal]):
            return ANSWERED
        return SCORED if answer == _CODES[ANSWERED] else _STATES[answer]

    def states(self) -> Counter[str]:
        counts = np.bincount(self._codes(), minlength=len(_STATES))
        return Counter({state: int(n) for state, n in zip(_STATES, counts, strict=True) if n})

    def settled(self) -> npt.NDArray[np.bool_]:
        """By ordinal: whether the sample has reached its final state."""
        return ~np.isin(self._codes(), (_CODES[NOT_ASKED], _CODES[ANSWERED]))

    def to_ask(self) -> Iterator[Attempt]:
        """Attempts without an answer, those that ended in an error included."""
        return (self.plan[int(ordinal)] for ordinal in np.flatnonzero(~self._has_answer()))

    def unanswered(self) -> int:
        """How many `to_ask` gives."""
        return int(np.count_nonzero(~self._has_answer()))

    def to_verify(self) -> Iterator[Attempt]:
        """Attempts whose answer has no score, those whose scorer failed included."""
        has_no_score = np.isnan(np.asarray(self.reward))
        return (self.plan[int(ordinal)] for ordinal in np.flatnonzero(self._has_answer() & has_no_score))

    def _has_answer(self) -> npt.NDArray[np.bool_]:
        return np.isin(np.frombuffer(self._answer, dtype=np.uint8), _HAS_ANSWER)

    def _codes(self) -> npt.NDArray[np.uint8]:
        """`state` of all, as numbers."""
        codes = np.frombuffer(self._answer, dtype=np.uint8).copy()
        has_answer = self._has_answer()
        has_score = has_answer & ~np.isnan(np.asarray(self.reward))
        codes[has_answer & ~has_score] = _CODES[ANSWERED]
        codes[has_score & (codes == _CODES[ANSWERED])] = _CODES[SCORED]
        codes[np.frombuffer(self._score_failed, dtype=np.uint8) == 1] = _CODES[SCORER_ERROR]
        return codes
