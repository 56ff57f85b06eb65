import pytest

from nemo_evaluator.scoring.pattern import answer_line, choice_letter, score_choice


@pytest.mark.parametrize(
    ("response", "letter"),
    [
        ("Answer: B", "B"),
        ("answer: b", "B"),
        ("Answer: (B)", "B"),
        ("Answer: **B**", "B"),
        ("**Answer: B**", "B"),
        ("**Answer:** B", "B"),
        ("Answer: $B$", "B"),
        ("Answer: $B", "B"),
        ("Answer: <B>", "B"),
        ("Answer: The correct choice is B", "B"),
        ("The correct answer is:\n\nB. Paris", "B"),
        ("Answer: \\boxed{B}", "B"),
        ("\\boxed{B}", "B"),
        ("\\boxed{\\text{B}}", "B"),
        ("The answer is $\\boxed{\\text{(B)}}$.", "B"),
        ("The answer is B", "B"),
        ("The answer is B.", "B"),
        ("The answer is B because it is.", "B"),
        ("The correct answer is option B.", "B"),
        ("The correct option is B, not C.", "B"),
        ("The final answer is (B) Paris", "B"),
        ("Answer: B. Paris", "B"),
        ("Answer:\n\nB", "B"),
        ("Answer: A. Hmm, no. Answer: B", "B"),
        ("Answer: A\nOn reflection:\nAnswer: B", "B"),
        ("Answer: Answer: B", "B"),
        ("Option A is wrong. Option B is right.", "B"),
        ("B", "B"),
        (" B\n", "B"),
        ("(B)", "B"),
        ("**B**", "B"),
        ("b)", "B"),
        ("B. Paris", "B"),
        ("(B) Paris", "B"),
        ("B\nA is wrong because it flies.", "B"),
        ("We see that it is **B**, as said", "B"),
        ("It must be (B), I think", "B"),
        ("Let's see. Answer: B", "B"),
        ("The answers vary. The answer is B", "B"),
    ],
)
def test_the_letter_a_response_names(response: str, letter: str) -> None:
    assert choice_letter(response) == letter


@pytest.mark.parametrize(
    "response",
    [
        "",
        "Answer: Because it is so",
        "Answer:",
        "Answer",
        "Let's see",
        "A dog is an animal",
        "The answer is a dog",
        "Answer: D'accord",
        "Answer: E",
        "Answer: AB",
        "Antwort",
        "Cats and dogs",
        "The answer is unknown",
    ],
)
def test_no_letter_is_none(response: str) -> None:
    assert choice_letter(response) is None
    assert score_choice(response, "A")["correct"] is False


@pytest.mark.parametrize(
    "response",
    [
        "Antwort: C",
        "Antwort:\n\nAntwort: C",
        "Die richtige Antwort ist C.",
        "Die Antwort lautet: C",
        "Réponse : C",
        "La réponse est C.",
        "Respuesta: C",
        "La respuesta correcta es C.",
        "Jawaban: C",
        "Jawaban yang benar adalah C.",
        "उत्तर: C",
        "सही उत्तर C है",
        "सही जवाब है C",
        "Jibu: C",
        "Jibu sahihi ni C",
        "答え: C",
        "答えはCです。",
        "正解はＣ",
        "答案：C",
        "正确答案是C。",
        "答案是（C）",
        "Ответ: C",
        "Правильный ответ — C.",
        "คำตอบ: C",
        "คำตอบคือ C",
        "উত্তর: C",
        "সঠিক উত্তর হল C",
        "సమాధానం: C",
    ],
)
def test_cues_of_other_languages(response: str) -> None:
    assert choice_letter(response) == "C"


def test_more_letters_can_be_asked_for() -> None:
    assert choice_letter("Answer: J", "ABCDEFGHIJ") == "J"
    assert choice_letter("Answer: J") is None


@pytest.mark.parametrize(
    ("response", "line"),
    [
        ("Because.\nAnswer: Paris\n", "Paris"),
        ("Answer: Rome\nAnswer: Paris", "Paris"),
        ("Answer:\nParis", "Paris"),
        ("I think\nParis\n\n", "Paris"),
        ("", ""),
    ],
)
def test_the_answer_line(response: str, line: str) -> None:
    assert answer_line(response) == line
