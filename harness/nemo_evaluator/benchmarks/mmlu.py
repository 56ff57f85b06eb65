"""MMLU: 14,042 four-way questions on 57 subjects, reasoned and then answered with a letter (zero-shot).

Hendrycks, Burns, Basart, Zou, Mazeika, Song and Steinhardt (2021), "Measuring Massive Multitask Language
Understanding", https://arxiv.org/abs/2009.03300
"""

import random

from nemo_evaluator.environments import ScorerInput, benchmark, scorer
from nemo_evaluator.environments.rows import Row
from nemo_evaluator.scoring.pattern import score_choice
from nemo_evaluator.scoring.text import before_next

PROMPT = """\
Answer the multiple-choice question. Think step by step, and end with a line of the form "Answer: $LETTER", where \
LETTER is A, B, C or D.

Question: {question}
A. {choices[0]}
B. {choices[1]}
C. {choices[2]}
D. {choices[3]}"""


def letter_and_category(row: Row, idx: int, rng: random.Random) -> Row:
    return {**row, "answer": "ABCD"[row["answer"]], "category": row["subject"]}


@benchmark(
    "mmlu",
    dataset="hf://cais/mmlu?config=all&split=test",
    prompt=PROMPT,
    target_field="answer",
    prepare_row=letter_and_category,
    metadata=("category",),
    gold="Answer: {expected}",
)
@scorer
def mmlu(sample: ScorerInput) -> dict[str, object]:
    return score_choice(before_next("\nQuestion:", sample.response), sample.target)
