"""Sixty four-way questions of general knowledge, written for this project; no download."""

from nemo_evaluator.environments import ScorerInput, benchmark, scorer
from nemo_evaluator.scoring.pattern import score_choice
from nemo_evaluator.scoring.text import before_next

PROMPT = """\
Answer each question with the letter of the right choice, on a line of the form "Answer: <letter>".

Question: Which of these is a colour?
A. Table
B. Yellow
C. Seven
D. Song
Answer: B

Question: How many wheels does a car usually have?
A. 2
B. 3
C. 6
D. 4
Answer: D

Question: {question}
A. {choices[0]}
B. {choices[1]}
C. {choices[2]}
D. {choices[3]}
Answer:"""


@benchmark(
    "tiny_choice",
    dataset="data/tiny_choice.jsonl",
    prompt=PROMPT,
    target_field="answer",
    metadata=("id", "category"),
    gold="Answer: {expected}",
)
@scorer
def tiny_choice(sample: ScorerInput) -> dict[str, object]:
    return score_choice(before_next("\nQuestion:", sample.response), sample.target)
