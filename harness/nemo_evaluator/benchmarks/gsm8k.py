"""GSM8K: 1,319 grade-school maths problems, solved step by step (zero-shot).

Cobbe, Kosaraju, Bavarian, Chen, Jun, Kaiser, Plappert, Tworek, Hilton, Nakano, Hesse and Schulman (2021), "Training
Verifiers to Solve Math Word Problems", https://arxiv.org/abs/2110.14168
"""

import random

from nemo_evaluator.environments import ScorerInput, benchmark, scorer
from nemo_evaluator.environments.rows import Row
from nemo_evaluator.scoring.numeric import score_number
from nemo_evaluator.scoring.text import before_next

PROMPT = """\
Solve the problem step by step, and end with a line of the form "The answer is <number>".

Problem: {question}

Solution:"""


def gold_number(row: Row, idx: int, rng: random.Random) -> Row:
    """The reference solution ends in `#### 1,234`."""
    return {"question": row["question"], "target": row["answer"].rpartition("####")[2].strip().replace(",", "")}


@benchmark(
    "gsm8k",
    dataset="hf://openai/gsm8k?config=main&split=test",
    prompt=PROMPT,
    prepare_row=gold_number,
    metadata=(),
    gold="The answer is {expected}",
)
@scorer
def gsm8k(sample: ScorerInput) -> dict[str, object]:
    return score_number(before_next("\nProblem:", sample.response), sample.target)
