"""A response may be a megabyte of anything: a scorer that backtracks over it would not end before the timeout."""

import pytest

from nemo_evaluator.scoring.numeric import score_number
from nemo_evaluator.scoring.pattern import answer_line, score_choice
from nemo_evaluator.scoring.text import before_next, exact_match, fuzzy_match, strip_reasoning

MEGABYTE = 1_000_000
PIECES = [
    *("1", "-1", "1,", "1,000,", "1.000 ", "100 000 ", "\u202f1", "1/", "1e9", "1x10^9", "1+1=", "$-", "."),
    *(" ", "\n", "(", "*", "**A", "A ", "a ", "'\"", "{,}", "\\boxed{", "\\frac{1", "<think>", "</think>"),
    *("answer ", "answer is ", "Answer:\n", "answer:1+1=", "option ", "उत्तर ", "答案", "İ"),
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", PIECES)
def test_any_piece_may_repeat(piece: str) -> None:
    score_in_every_way(piece * (MEGABYTE // 10 // len(piece)))
    score_in_every_way("answer is " + piece * (MEGABYTE // 10 // len(piece)))


@pytest.mark.timeout(20)
def test_a_megabyte_of_everything_is_scored() -> None:
    mixed = "".join(PIECES)
    score_in_every_way(mixed * (MEGABYTE // len(mixed)))


def score_in_every_way(text: str) -> None:
    score_number(text, "1")
    score_number(text, "1", dot_groups=True)
    score_choice(text, "B")
    answer_line(text)
    strip_reasoning(text)
    before_next("\nQuestion:", text)
    exact_match(text, "1")
    fuzzy_match(text, ["1 2 3"])
