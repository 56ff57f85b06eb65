"""Verdicts on words, and the cleaning that every scorer starts from."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

THINK_TAGS = ("<think>", "</think>")

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_JOINT = re.compile(r"(?<=\w)[-/:\u2013\u2014](?=\w)")
_MARK = re.compile(r"(?<!\d)[.,]|[.,](?!\d)|-(?!\d)|[!\"#$%&'()*+/:;<=>?@\[\\\]^_`{|}~]")
"""ASCII punctuation, but not the point of 3.5, the comma of 1,000 or the sign of -5."""


@dataclass(frozen=True, slots=True)
class Visible:
    """What remains of a response when the thinking is taken away."""

    text: str
    is_unclosed: bool = False
    """The model was still thinking when it stopped: there is no answer."""


def strip_reasoning(response: str, tags: tuple[str, str] = THINK_TAGS) -> Visible:
    """Drop everything up to the last closing tag; a block opened and never closed leaves no answer.

    Only a closing tag is common: chat templates put the opening one into the prompt.
    """
    opening, closing = tags
    _, closed, rest = response.rpartition(closing)
    if opening in rest:
        return Visible("", is_unclosed=True)
    return Visible(rest.lstrip() if closed else response)


def before_next(marker: str, response: str) -> str:
    """Up to where a base model goes on with a question of its own; an echo of the question before the answer stays."""
    answer, marked, _ = response.partition(marker)
    return answer if marked and answer.strip() else response


def normalise(text: str) -> str:
    """Lower case, compatibility forms folded, no punctuation, no English articles, single spaces (as SQuAD does).

    Rajpurkar et al. 2016, https://arxiv.org/abs/1606.05250. Other than there, marks inside numbers stay, because 3.5 is
    not 35, a hyphen parts words, and an article that is all there is stays: the answer may be "A".
    """
    plain = _plain(text)
    return _without_articles(plain) or plain


def exact_match(response: str, target: str) -> bool:
    """Equal after normalisation; nothing empty is ever a match."""
    wanted = normalise(target)
    return bool(wanted) and normalise(response) == wanted


def fuzzy_match(response: str, targets: Iterable[str]) -> bool:
    """One of the targets occurs in the response as whole words. Never the other way: "1" is no answer to "1 in 10"."""
    said = _plain(response)
    spoken = (f" {_without_articles(said)} ", f" {said} ")
    wanted = [normalise(target) for target in targets]
    return any(f" {words} " in text for words in wanted if words for text in spoken)


def _plain(text: str) -> str:
    folded = _JOINT.sub(" ", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(_MARK.sub("", folded).translate(_UNICODE_PUNCTUATION).split())


def _without_articles(plain: str) -> str:
    return " ".join(_ARTICLES.sub(" ", plain).split())


class _Punctuation(dict[int, int | None]):
    """A `str.translate` table that deletes punctuation of every script and learns it as it goes."""

    def __missing__(self, code: int) -> int | None:
        is_mark = code > 127 and unicodedata.category(chr(code)).startswith("P")
        self[code] = None if is_mark else code
        return self[code]


_UNICODE_PUNCTUATION = _Punctuation()
