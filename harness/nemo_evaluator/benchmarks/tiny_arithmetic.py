"""Sixty word problems from one-step sums to several steps, written for this project; no download.

They order themselves by `level` (1 to 4), so that a very small model gets some right and a large one nearly all.
"""

from nemo_evaluator.environments import ScorerInput, benchmark, scorer
from nemo_evaluator.scoring.numeric import score_number
from nemo_evaluator.scoring.text import before_next

PROMPT = """\
Answer each question with a number. Think step by step if you need to, and end with a line "Answer: <number>".

Question: Kim has 1 hat and buys 2 more. How many hats does she have?
Answer: 3

Question: A pack holds 10 cards and 4 of them are lost. How many cards are left?
Answer: 6

Question: {question}
Answer:"""


@benchmark(
    "tiny_arithmetic",
    dataset="data/tiny_arithmetic.jsonl",
    prompt=PROMPT,
    target_field="answer",
    metadata=("id", "category", "level"),
    gold="Answer: {expected}",
)
@scorer
def tiny_arithmetic(sample: ScorerInput) -> dict[str, object]:
    return score_number(before_next("\nQuestion:", sample.response), sample.target)
