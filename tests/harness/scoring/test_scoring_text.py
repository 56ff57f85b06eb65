import pytest

from nemo_evaluator.scoring.text import Visible, before_next, exact_match, fuzzy_match, normalise, strip_reasoning


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ("<think>maybe 3</think>\n4", "4"),
        ("maybe 3</think>\n4", "4"),
        ("<think>a <think>b</think> c</think> 4", "4"),
        ("<think>a</think> 3 <think>b</think> 4", "4"),
        ("<think></think>4", "4"),
        ("4", "4"),
        (" 4 \n", " 4 \n"),
        ("", ""),
        ("<think>a</think>", ""),
    ],
)
def test_thinking_is_taken_away_up_to_the_last_closing_tag(response: str, text: str) -> None:
    assert strip_reasoning(response) == Visible(text)


@pytest.mark.parametrize("response", ["<think>maybe 4", "<think>a</think> so <think>4", "<think><think>4"])
def test_a_thought_that_never_ends_is_no_answer(response: str) -> None:
    assert strip_reasoning(response) == Visible("", is_unclosed=True)


def test_tags_can_be_others() -> None:
    assert strip_reasoning("[THINK]3[/THINK]4", ("[THINK]", "[/THINK]")) == Visible("4")
    assert strip_reasoning("<think>3</think>4", ("[THINK]", "[/THINK]")) == Visible("<think>3</think>4")


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  Beatles!", "beatles"),
        ("A", "a"),
        ("3.5", "3.5"),
        ("1,000.", "1,000"),
        ("-5", "-5"),
        ("well-known", "well known"),
        ("2-1", "2 1"),
        ("«Déjà vu»", "déjà vu"),
        ("ＡＢＣ", "abc"),
        ("हिन्दी।", "हिन्दी"),
        ("...", ""),
    ],
)
def test_normalisation(text: str, normal: str) -> None:
    assert normalise(text) == normal


@pytest.mark.parametrize(
    ("response", "target", "equal"),
    [("The Beatles.", "beatles", True), ("beatles band", "beatles", False), ("", "", False), ("...", "!", False)],
)
def test_exact_match(response: str, target: str, equal: bool) -> None:
    assert exact_match(response, target) is equal


@pytest.mark.parametrize(
    ("response", "targets", "found"),
    [
        ("It was Paul McCartney, I think", ["paul mccartney"], True),
        ("It was John", ["Paul", "john"], True),
        ("1 in 10", ["10"], True),
        ("10", ["1"], False),
        ("1", ["10"], False),
        ("", ["x"], False),
        ("anything", [""], False),
        ("anything", ["the", "!"], False),
        ("Grade A", ["A"], True),
        ("a grade", ["B"], False),
        ("Paul", ["Paul McCartney"], False),
        ("anything", [], False),
    ],
)
def test_fuzzy_match_finds_whole_targets_in_the_response_only(response: str, targets: list[str], found: bool) -> None:
    assert fuzzy_match(response, targets) is found


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (" 5\n\nQuestion: And 6?\nAnswer: 7", " 5\n"),
        ("\nQuestion: How many?\nAnswer: 72", "\nQuestion: How many?\nAnswer: 72"),
        ("Question: How many?\nAnswer: 72", "Question: How many?\nAnswer: 72"),
        ("5", "5"),
    ],
)
def test_a_base_model_is_cut_where_it_asks_the_next_question(response: str, answer: str) -> None:
    assert before_next("\nQuestion:", response) == answer
