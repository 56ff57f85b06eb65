from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_evaluator.scoring.numeric import MARGIN, TAILS, final_number, numeric_match, parse_number


def number(response: str, **style: bool) -> Fraction | None:
    found = final_number(response, **style)
    return found.value if found else None


@pytest.mark.parametrize(
    ("response", "value"),
    [
        ("The total is 72 clips, altogether.", 72),
        ("There are 3 4-seat tables.", 4),
        ("Take 3 4", 4),
        ("It is 12. 34 was a slip? No, 12.", 12),
        ("The answer is 42 apples", 42),
        ("The answer is: 42", 42),
        ("The answer is $\\boxed{42}$.", 42),
        ("So we get \\boxed{8,000} in all, after 3 steps.", 8000),
        ("\\boxed{\\text{total } 7}", 7),
        ("\\boxed{42\\text{ apples}}", 42),
        ("**Answer:** 42", 42),
        ("Answer: **$42**", 42),
        ("Answer: <42>", 42),
        ("The answer is \\(42\\).", 42),
        ("Answer: 42\nI hope this answer is helpful.", 42),
        ("Answer:\n\n42", 42),
        ("#### 1,234", 1234),
        ("The answer is 3 + 4 = 7.", 7),
        ("The answer is 5 * 6 = 10 * 3 = 30 dollars", 30),
        ("The answer is the sum of 3 and 4, which is 7.", 7),
        ("The answer is Tom has 42 apples.", 42),
        ("Answer: 42 apples (6 boxes of 7)", 42),
        ("Answer: 41. No, wait. Answer: 42", 42),
        ("The answers 1 and 2 are wrong, so it must be 3", 3),
        ("The answer can be found by adding 3 and 4, giving 7.", 7),
        ("The answer is -5", -5),
        ("It fell by 11, to −7 degrees", -7),
        ("10-3", 3),
        ("it weighs .5 kg", Fraction(1, 2)),
        ("H2O boils, x2 is 9", 9),
        ("18km", 18),
        (" 12:00", 12),
        (" 5\n", 5),
        ("Answer: 1e3", 1000),
        ("Answer: 3 x 10^4", 30000),
        ("Answer: $3 \\times 10^{4}$", 30000),
        ("5 e 3", 3),
        ("Answer: 3/4", Fraction(3, 4)),
        ("Answer: $\\frac{3}{4}$", Fraction(3, 4)),
        ("Answer: -\\dfrac{1}{2}", Fraction(-1, 2)),
        ("Answer: 1 1/2", Fraction(3, 2)),
        ("Answer: 1/0", 1),
        ("1, 2, 3", 3),
        ("1,2,3", 3),
    ],
)
def test_the_number_a_response_ends_up_with(response: str, value: Fraction) -> None:
    assert number(response) == value


@pytest.mark.parametrize("response", ["", "no idea", "Answer:", "H2O", "\\boxed{}", "9" * 5000])
def test_no_number_is_none(response: str) -> None:
    assert final_number(response) is None
    assert not numeric_match(response, "0")


@pytest.mark.parametrize(
    "response",
    [
        "$29.00",
        "29.",
        "29",
        "29.0",
        "\\$29",
        "$ 29",
        "29 dollars",
        "$29.",
        "€29",
        "029",
        "+29",
        "**29**",
        "`29`",
        "=29",
    ],
)
def test_spellings_of_29(response: str) -> None:
    assert numeric_match(response, "29")


@pytest.mark.parametrize("response", ["29,000", "2900", "290", "2.9", "-29", "29/2", "29e1", "0.29", "1029"])
def test_what_is_not_29(response: str) -> None:
    assert not numeric_match(response, "29")


@pytest.mark.parametrize(
    ("response", "target"),
    [
        ("$80,000", "80000"),
        ("80\u202f000", "80000"),
        ("80'000", "80000"),
        ("9{,}500", "9500"),
        ("9\\,500", "9500"),
        ("\\boxed{9{,}500}", "9500"),
        ("1,00,000", "100000"),
        ("1,234,567.50", "1234567.5"),
        ("1.234.567", "1234567"),
        ("1.234,5", "1234.5"),
        ("3,5", "3.5"),
        ("1.234", "1.234"),
        ("25%", "25"),
        ("25\\%", "25"),
        ("0.25", "25%"),
        ("12.50", "12.5"),
        ("1/4", "0.25"),
    ],
)
def test_equal_by_value(response: str, target: str) -> None:
    assert numeric_match(response, target)


@pytest.mark.parametrize(("response", "target"), [("10", "100"), ("1", "10"), ("100", "1"), ("0", "100"), ("", "0")])
def test_trailing_zeros_are_digits(response: str, target: str) -> None:
    assert not numeric_match(response, target)


@pytest.mark.parametrize(
    ("response", "value"),
    [
        ("Antwort: 1.234 Dollar", 1234),
        ("Antwort: 1.234,50 €", Fraction("1234.5")),
        ("Réponse : 80 000 $", 80000),
        ("Ответ: 12 500", 12500),
        ("Respuesta: 3,5", Fraction("3.5")),
        ("La respuesta es 0,125", Fraction("0.125")),
        ("Die Antwort lautet 18.", 18),
        ("Antwort: 3.5", Fraction("3.5")),
    ],
)
def test_languages_that_part_thousands_with_a_point(response: str, value: Fraction) -> None:
    assert number(response, dot_groups=True) == value


@pytest.mark.parametrize(
    ("response", "value"),
    [
        ("উত্তর: ১৮", 18),
        ("คำตอบ: ๑๘ บาท", 18),
        ("సమాధానం: ౧౮", 18),
        ("उत्तर: १,२३४", 1234),
        ("الجواب هو ١٢٫٥", Fraction("12.5")),
        ("答案是１８。", 18),
        ("答えは18ドルです。", 18),
        ("答案: 18元, 共3天", 18),
        ("Jibu ni 18", 18),
        ("คำตอบคือ 18", 18),
        ("ответ — 18, а не 20? Да.", 18),
    ],
)
def test_digits_and_cues_of_other_scripts(response: str, value: Fraction) -> None:
    assert number(response) == value


def test_only_the_end_of_a_long_text_is_searched_without_a_cue() -> None:
    assert number("7 " + "word " * 10_000) is None
    assert number("7 " + "word " * 1_000) == 7


def test_a_number_across_the_cut_is_not_read_in_half() -> None:
    for size in TAILS[:-1]:
        for padding in range(size - MARGIN, size + 2):
            assert number("It takes 1 1/2 " + "x" * padding) == Fraction(3, 2)
    assert number("1234567890" + "x" * (TAILS[-1] - 5)) is None


@pytest.mark.parametrize(("target", "value"), [("1,234", 1234), ("45.0", 45), ("-3", -3), ("none", None)])
def test_a_target_is_parsed_by_the_same_rules(target: str, value: int | None) -> None:
    found = parse_number(target)
    assert (found.value if found else None) == value


@given(st.integers(-(10**12), 10**12))
def test_every_integer_is_read_from_each_of_its_spellings(value: int) -> None:
    for spelling in (f"{value}", f"{value:,}", f"The answer is {value:,}.", f"So {value}.00 in all", f"#### {value}"):
        assert number(spelling) == value
    for spelling in (f"{value:,}".replace(",", "."), f"Antwort: {value:,}".replace(",", " ")):
        assert number(spelling, dot_groups=True) == value


@given(st.text())
def test_any_text_gets_a_verdict(text: str) -> None:
    assert final_number(text) is None or isinstance(number(text), Fraction)
