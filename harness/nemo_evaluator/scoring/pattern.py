"""Which choice a response names: a whole letter, after the last explicit cue if there is one."""
# ruff: noqa: RUF001 - the marks of other scripts are meant

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from nemo_evaluator.scoring.cues import ANSWER_WORDS, after_cues

TAIL = 20_000
LINE = 400
"""Longer lines are prose; a choice is not named at their start by itself."""
CHOICE_WORDS = ("option", "choice", "correct")

_FULL_WIDTH = {0xFF21 + i: 0x41 + i for i in range(26)} | {0xFF08: "(", 0xFF09: ")", 0xFF1A: ":"}
_OPENING = r"[\s*_<`\"'“«$(\[{（【「]*(?:\\[a-z]+\{[\s(]*)*(?:(?:[Oo]ption|[Cc]hoice|[Ll]etter)\s+)?[(*_\[]*"
_NOT_A_WORD = r"(?![A-Za-z0-9_À-ɏЀ-ӿ]|['’]\w)"


class _Patterns(NamedTuple):
    said: re.Pattern[str]
    """At the start of what follows a cue."""
    alone: re.Pattern[str]
    """All that is on a line."""
    leading: re.Pattern[str]
    """A list item: `B. Paris`, `(B) Paris`, `B) Paris`."""
    marked: re.Pattern[str]
    """Somewhere in the text, but set apart: `(B)`, `**B**`."""


def choice_letter(response: str, letters: str = "ABCD") -> str | None:
    """The chosen letter, upper case, or None if the response names none."""
    if not response.isascii():
        response = response.translate(_FULL_WIDTH)
    patterns = _patterns(letters)
    for words in (ANSWER_WORDS, CHOICE_WORDS):
        for said in after_cues(response, words):
            if match := patterns.said.match(said):
                return (match[1] or match[2]).upper()
    return _uncued(response[-TAIL:], patterns)


def score_choice(response: str, target: str, letters: str = "ABCD") -> dict[str, object]:
    """A scorer's verdict, with the letter that was read."""
    chosen = choice_letter(response, letters)
    return {"correct": chosen is not None and chosen == target.upper(), "extracted": chosen, "method": "choice"}


def answer_line(response: str) -> str:
    """What stands after the last cue, else the last line that is not empty."""
    said = next((said.strip() for said in after_cues(response) if said.strip()), None)
    return said if said is not None else response.rstrip()[-TAIL:].rpartition("\n")[2].strip()


def _uncued(response: str, patterns: _Patterns) -> str | None:
    for line in _outer_lines(response):
        for pattern in (patterns.alone, patterns.leading):
            if match := pattern.match(line):
                return match[1].upper()
    marked = patterns.marked.findall(response)
    return next(filter(None, marked[-1])) if marked else None


def _outer_lines(response: str) -> Iterator[str]:
    """The last line, then the first: a summary outranks an opening."""
    stripped = response.strip()
    for line in (stripped.rpartition("\n")[2], stripped.partition("\n")[0]):
        if len(line) <= LINE:
            yield line.strip()


@cache
def _patterns(letters: str) -> _Patterns:
    upper, either = f"[{letters}]", f"[{letters}{letters.lower()}]"
    return _Patterns(
        said=re.compile(rf"{_OPENING}(?:({upper}){_NOT_A_WORD}|([{letters.lower()}])(?=\W*$|[)\]}}.*:]))"),
        alone=re.compile(rf"{_OPENING}({either})[)\]}}*_.:$\"'\s]*$"),
        leading=re.compile(rf"{_OPENING}({upper})[*_]*[.):\]][*_]*(?:\s|$)"),
        marked=re.compile(rf"\(({upper})\)|\*\*({upper})[.)]?\*\*"),
    )
