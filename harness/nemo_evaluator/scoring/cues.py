"""Where a response says that now comes the answer, in the languages of MGSM and a few more.

Work is bounded: words are found by substring search, and only the last `MAX_CUES` occurrences of each are looked at.
"""
# ruff: noqa: RUF001 - the letters of other scripts are meant

import re
from collections.abc import Iterator
from functools import cache

MAX_CUES = 32
WINDOW = 300
"""Characters after a cue that may hold the answer."""

ANSWER_WORDS = (
    "answer",
    "antwort",
    "réponse",
    "respuesta",
    "resposta",
    "risposta",
    "jawaban",
    "jibu",
    "ответ",
    "उत्तर",
    "जवाब",
    "উত্তর",
    "సమాధానం",
    "คำตอบ",
    "答え",
    "解答",
    "回答",
    "正解",
    "答案",
    "####",
)
BOXED = "\\boxed{"

_SPACED_SCRIPTS_END = "\u0590"
"""Latin, Greek and Cyrillic come before; there a letter after the cue makes it another word ("answers")."""
_MARKUP = r"[\s*_<`\"'“”«»—–]*"
_CONNECTOR = re.compile(
    rf"{_MARKUP}(?:"
    r"(?=[^\w\n:：=]{0,6}(?:\d|[A-Z](?![A-Za-z])))|"  # "Answer B", "ответ — 18"
    r"[^\n:：=]{0,60}?(?:[:：=]|\b(?:is|are|was|be|equals|ist|sind|lautet|beträgt|est|es|é|è|adalah|ialah|ni|"
    r"равен|равно|это)\b|[は是为為]|है|হল|হলো|হচ্ছে|คือ|เท่ากับ)"
    rf"){_MARKUP}[:：]?{_MARKUP}"
)
_NEXT_LINE = re.compile(r"[\s*_]*\n\s*")


def after_cues(text: str, words: tuple[str, ...] = ANSWER_WORDS) -> Iterator[str]:
    """What follows each explicit cue, to the end of its line, the last cue first."""
    folded = text.lower()
    if len(folded) != len(text):  # a few letters grow when folded, and positions would be off
        folded = text
    for position, is_boxed in _cues(folded, words):
        if is_boxed:
            yield _in_braces(text, position)
        elif not _goes_on(folded, position) and (connector := _CONNECTOR.match(text, position, position + WINDOW)):
            yield _line(text, connector.end())


def _cues(folded: str, words: tuple[str, ...]) -> list[tuple[int, bool]]:
    """Where each cue ends, from the last to the first."""
    found = []
    for word in _ascii_only(words) if folded.isascii() else (*words, BOXED):
        position = len(folded)
        for _ in range(MAX_CUES):
            position = folded.rfind(word, 0, position)
            if position < 0:
                break
            found.append((position + len(word), word is BOXED))
    return sorted(found, reverse=True)


@cache
def _ascii_only(words: tuple[str, ...]) -> tuple[str, ...]:
    """Half of the words cannot stand in most responses."""
    return tuple(word for word in (*words, BOXED) if word.isascii())


def _goes_on(text: str, position: int) -> bool:
    following = text[position : position + 1]
    return following.isalpha() and text[position - 1] < _SPACED_SCRIPTS_END


def _line(text: str, start: int) -> str:
    """The rest of the line, or the next line if a heading like "Answer:" stands alone."""
    if heading := _NEXT_LINE.match(text, start, start + WINDOW):
        start = heading.end()
    end = text.find("\n", start, start + WINDOW)
    return text[start : end if end >= 0 else start + WINDOW]


def _in_braces(text: str, start: int) -> str:
    depth = 1
    for position, character in enumerate(text[start : start + WINDOW], start):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return text[start:position]
    return text[start : start + WINDOW]
