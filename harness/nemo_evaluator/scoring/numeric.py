"""Numbers in answers, compared by value and never by their spelling: 10 is not 100, "$29.00" is 29, "29,000" is not.

One numeral has one value. A comma or a point before exactly three digits is the only ambiguity: a comma parts
thousands, a point is decimal unless `dot_groups` says that the language parts thousands with it (de, es, fr, ru). All
other mixtures explain themselves: 1.234.567, 1.234,5 and 3,5 read the same everywhere.
"""
# ruff: noqa: RUF001 - the digits and marks of other scripts are meant

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from nemo_evaluator.scoring.cues import after_cues

TAILS = (80, 800, 20_000)
"""Without a cue only the last characters are searched for a number."""
MARGIN = 24
"""Nearer to the cut a number may lack its beginning ("1 1/2", "80 000")."""
MAX_DIGITS = 400
"""Longer runs of digits are no answer, and big integers are slow."""

_SPACES = "\u00a0\u2009\u202f"
_NUMERAL = re.compile(
    rf"""
    (?: (?<![\w)\]}}.%-]) (?P<sign>[-+]) )?
    (?: [$€£¥₹₽฿] (?P<inner>-)? \s? )?
    (?<![A-Za-z0-9_.]) (?! (?<=[0-9]:)00(?![0-9]) )  # the 00 of 12:00 is no answer
    (?P<digits> [0-9]+ (?:[.,'{_SPACES}][0-9]+)* | (?<![^\s$€£=(:*{{+-])\.[0-9]+ )
    (?: [eE](?P<exponent>[+-]?[0-9]{{1,3}})(?!\w)
      | \s?(?:\\times|\\cdot|×|x|\*)\s?10\s?\^\s?\{{?(?P<power>-?[0-9]{{1,3}})\}}?
      | (?:\s(?P<numerator>[0-9]+))? \s?/\s?(?P<denominator>[0-9]+)(?![0-9.,/])
    )?
    \s?(?P<percent>%)?
    """,
    re.VERBOSE,
)
_GROUPED = re.compile(rf"([0-9]{{1,3}})((?:([,.'{_SPACES}])[0-9]{{3}})(?:\3[0-9]{{3}})*)(?:[.,]([0-9]+))?")
_INDIAN = re.compile(r"([0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3})(?:\.([0-9]+))?")
_DECIMAL = re.compile(r"([0-9]*)[.,]([0-9]+)")
_NOT_DIGIT = re.compile(r"[^0-9]+")
_SPACE_GROUPS = re.compile(r"(?<![\d.,])(\d{1,3})((?: \d{3})+)(?!\d)")

_SUM = re.compile(r"(?:[\d\s+\-*/×÷x().,$€£%]*=)+\s*")
_SENTENCE_END = re.compile(r"[.!?]\s|[।。]")
_LEAD = re.compile(r"[\s*_`~—–≈=(\[{$€£¥₹₽฿\\]*")

_FRAC = re.compile(r"\\[dt]?frac\s*\{\s*(-?\d+)\s*\}\s*\{\s*(\d+)\s*\}")
_LATEX_COMMA = re.compile(r"(?<=\d)(?:\{,\}|\{\\,\})(?=\d)")
_LATEX_SPACE = re.compile(r"(?<=\d)\\[,!;: ]\s?(?=\d)")


@dataclass(frozen=True, slots=True)
class Number:
    """A numeral's value; a percent sign is remembered, because 25% answers both 25 and 0.25."""

    value: Fraction
    is_percent: bool = False
    text: str = ""

    def equals(self, other: "Number") -> bool:
        if self.value == other.value:
            return True
        if self.is_percent == other.is_percent:
            return False
        return self._fraction() == other._fraction()

    def _fraction(self) -> Fraction:
        return self.value / 100 if self.is_percent else self.value


def final_number(response: str, *, dot_groups: bool = False) -> Number | None:
    """The number a response ends up with: after its last explicit cue or in its last box, else its last number."""
    for said in after_cues(response):
        if number := _said_number(plain(said, dot_groups), dot_groups):
            return number
    return _last_number(response, dot_groups)


def score_number(response: str, target: str, *, dot_groups: bool = False) -> dict[str, object]:
    """A scorer's verdict, with the numeral that was read."""
    wanted, found = parse_number(target), final_number(response, dot_groups=dot_groups)
    return {
        "correct": wanted is not None and found is not None and found.equals(wanted),
        "extracted": found.text if found else None,
        "method": "numeric",
    }


def numeric_match(response: str, target: str, *, dot_groups: bool = False) -> bool:
    """The response's final number has the target's value; no number is never a match."""
    return bool(score_number(response, target, dot_groups=dot_groups)["correct"])


@lru_cache(maxsize=1 << 16)  # the same targets come back for every repeat
def parse_number(text: str, *, dot_groups: bool = False) -> Number | None:
    """The first number in a short text, such as a target."""
    match = _NUMERAL.search(plain(text, dot_groups))
    return _value(match, dot_groups, last=False) if match else None


def plain(text: str, dot_groups: bool = False) -> str:
    """ASCII digits and signs for those of every script, and LaTeX spelt out."""
    if not text.isascii():
        text = text.translate(_TO_ASCII)
    if "\\" in text or "{" in text:
        text = _FRAC.sub(r"\1/\2", text.replace("\\$", "$").replace("\\%", "%"))
        text = _LATEX_SPACE.sub("\u202f", _LATEX_COMMA.sub(",", text))
    if dot_groups:  # these languages also part thousands with a plain space
        text = _SPACE_GROUPS.sub(lambda match: match[0].replace(" ", "\u202f"), text)
    return text


def _said_number(said: str, dot_groups: bool) -> Number | None:
    """After a cue: what is named at once, or what its sum comes to, or the last number of the sentence."""
    if total := _SUM.match(said):
        said = said[total.end() :]
    lead = _LEAD.match(said)
    first = _NUMERAL.search(said)
    if first is None:
        return None
    if lead and first.start("digits") <= lead.end() + 1:
        return _value(first, dot_groups, last=False)
    end = _SENTENCE_END.search(said, first.start("digits"))
    last = _last_match(said[: end.start()] if end else said)
    return _value(last, dot_groups, last=True) if last else None


def _last_number(response: str, dot_groups: bool) -> Number | None:
    """Read backwards in growing steps, because most responses end in their number."""
    for size in TAILS:
        tail, is_cut = response[-size:], len(response) > size
        if is_cut:  # a number cut in two would be another number
            tail = tail.partition(" ")[2]
        last = _last_match(plain(tail, dot_groups))
        if last and not (is_cut and last.start() < MARGIN):
            return _value(last, dot_groups, last=True)
        if not is_cut:
            break
    return None


def _last_match(text: str) -> re.Match[str] | None:
    last = None
    for last in _NUMERAL.finditer(text):  # noqa: B007 - only the last is wanted
        pass
    return last


def _value(match: re.Match[str], dot_groups: bool, *, last: bool) -> Number | None:
    value = _magnitude(match["digits"], dot_groups, last)
    if value is None:
        return None
    exponent = match["exponent"] or match["power"]
    if exponent:
        value *= Fraction(10) ** int(exponent)
    elif match["denominator"] and len(match["denominator"]) <= MAX_DIGITS and int(match["denominator"]):
        numerator, denominator = match["numerator"], int(match["denominator"])
        value = value + Fraction(int(numerator), denominator) if numerator else value / denominator
    is_negative = (match["sign"] or match["inner"]) == "-"
    return Number(-value if is_negative else value, bool(match["percent"]), match[0].strip())


def _magnitude(digits: str, dot_groups: bool, last: bool) -> Fraction | None:
    if len(digits) > MAX_DIGITS:
        return None
    if digits.isdecimal():
        return Fraction(int(digits))
    if grouped := _GROUPED.fullmatch(digits):
        head, groups, separator, decimals = grouped.groups()
        is_decimal_point = separator == "." and len(groups) == 4 and decimals is None and not dot_groups
        if not is_decimal_point and not (head == "0" and len(groups) == 4):
            return _fraction(head + groups.replace(separator, ""), decimals)
    if indian := _INDIAN.fullmatch(digits):
        return _fraction(indian[1].replace(",", ""), indian[2])
    if decimal := _DECIMAL.fullmatch(digits):
        return _fraction(decimal[1], decimal[2])
    pieces = _NOT_DIGIT.split(digits)  # "1,2,3" is a list of numbers
    return Fraction(int(pieces[-1 if last else 0]))


def _fraction(whole: str, decimals: str | None) -> Fraction:
    return Fraction(int(whole + (decimals or "")), 10 ** len(decimals or ""))


class _ToAscii(dict[int, str | int]):
    """A `str.translate` table: decimal digits of every script, and the marks that go with them."""

    def __missing__(self, code: int) -> str | int:
        digit = unicodedata.decimal(chr(code), None)
        self[code] = code if digit is None else str(digit)
        return self[code]


_TO_ASCII = _ToAscii({ord(mark): plain for mark, plain in zip("\u2212\uff0d٫٬．，％٪’", "--.,.,%%'", strict=True)})
