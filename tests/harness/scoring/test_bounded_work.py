"""A response may be a megabyte of anything: a scorer that backtracks over it would never come back (see the timeout)."""

import pytest

from nemo_evaluator.scoring.numeric import score_number
from nemo_evaluator.scoring.pattern import answer_line, score_choice
from nemo_evaluator.scoring.text import before_next, exact_match, fuzzy_match, strip_reasoning

MEGABYTE = 1_000_000
PIECES = [
    "1", "-1", "1,", "1,000,", "1.000 ", "100 000 ", "1/", "1e9", "1x10^9", "1+1=", "$-", ".", " ", "\n", "(", "*", "**A", "A ",
    "answer ", "answer is ", "Answer:\n", "answer:1+1=", "option ", "\\boxed{", "\\frac{1", "{,}", "<think>", "</think>",
    "उत्तर ", "答案", "İ", "\u202f1", "a ", "'\"",
]  # fmt: skip


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", PIECES)
def test_a_megabyte_of_anything_is_scored(piece: str) -> None:
    for text in (piece * (MEGABYTE // len(piece)), "answer is " + piece * (MEGABYTE // len(piece))):
        score_number(text, "1")
        score_number(text, "1", dot_groups=True)
        score_choice(text, "B")
        answer_line(text)
        strip_reasoning(text)
        before_next("\nQuestion:", text)
        exact_match(text, "1")
        fuzzy_match(text, ["1 2 3"])
