"""The benchmarks that ship with their data: items of our own, checked one by one."""

import ast
import operator
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from nemo_evaluator.environments.declare import DeclaredEnvironment
from nemo_evaluator.environments.registry import find, resolve
from nemo_evaluator.environments.rows import load_rows

BUNDLED = ["tiny_arithmetic", "tiny_choice"]
OPERATORS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def rows_of(name: str) -> list[dict[str, Any]]:
    environment = find(name)
    assert issubclass(environment, DeclaredEnvironment)
    rows = load_rows(environment.declaration.dataset, environment.folder, {})
    return [rows[idx] for idx in range(len(rows))]


def evaluate(node: ast.expr) -> Fraction:
    if isinstance(node, ast.BinOp):
        return Fraction(OPERATORS[type(node.op)](evaluate(node.left), evaluate(node.right)))
    assert isinstance(node, ast.Constant)
    return Fraction(node.value)


@pytest.mark.parametrize("name", BUNDLED)
async def test_gold_scores_one_and_nothing_and_nonsense_score_zero(name: str) -> None:
    environment = resolve(name)
    await environment.prepare()
    for idx in range(await environment.dataset_size()):
        seed, gold = await environment.seed(idx), await environment.gold_response(idx)
        assert gold is not None
        assert (await environment.verify_sample(seed, gold)).reward == 1.0, seed
        for wrong in ("", "I do not know.", "Answer: 987654", "Answer: E"):
            assert (await environment.verify_sample(seed, wrong)).reward == 0.0, (seed, wrong)


@pytest.mark.parametrize("name", BUNDLED)
async def test_a_prompt_ends_where_the_answer_begins_and_does_not_hold_it_already(name: str) -> None:
    environment = resolve(name)
    seed = await environment.seed(0)

    assert seed.prompt.endswith("\nAnswer:")
    assert seed.metadata.keys() >= {"id", "category"}
    assert "answer" not in seed.metadata


@pytest.mark.parametrize("name", BUNDLED)
def test_there_are_sixty_different_items_in_several_categories(name: str) -> None:
    rows = rows_of(name)

    assert len({row["id"] for row in rows}) == len({row["question"] for row in rows}) == len(rows) == 60
    assert len({row["category"] for row in rows}) >= 6


@pytest.mark.parametrize("row", rows_of("tiny_arithmetic"), ids=lambda row: row["id"])
def test_the_solution_comes_to_the_answer(row: dict[str, Any]) -> None:
    assert evaluate(ast.parse(row["check"], mode="eval").body) == Fraction(row["answer"])


def test_the_arithmetic_grows_harder() -> None:
    levels = [row["level"] for row in rows_of("tiny_arithmetic")]

    assert levels == sorted(levels)
    assert Counter(levels) == {1: 15, 2: 15, 3: 15, 4: 15}


def test_the_choices_are_four_and_the_gold_letters_balanced() -> None:
    rows = rows_of("tiny_choice")

    assert all(len(set(row["choices"])) == 4 for row in rows)
    assert Counter(row["answer"] for row in rows) == dict.fromkeys("ABCD", 15)


@pytest.mark.parametrize(
    ("name", "idx", "response", "reward"),
    [
        ("tiny_arithmetic", 0, " 5\n\nQuestion: And 7 plus 1?\nAnswer: 8", 1.0),
        ("tiny_arithmetic", 0, "Question: Tom has 2 apples.\nAnswer: 5", 1.0),
        ("tiny_arithmetic", 0, "<think>2 + 3 = 6?</think>He has **5** apples.", 1.0),
        ("tiny_arithmetic", 0, "<think>It is 5", 0.0),
        ("tiny_choice", 0, " A\n\nQuestion: Which of these is blue?\nA. Sky\nAnswer: B", 1.0),
        ("tiny_choice", 0, "A. Sparrow", 1.0),
        ("tiny_choice", 0, "A sparrow can fly, but the answer is B.", 0.0),
    ],
)
async def test_chat_and_base_models_are_read_alike(name: str, idx: int, response: str, reward: float) -> None:
    environment = resolve(name)
    assert (await environment.verify_sample(await environment.seed(idx), response)).reward == reward
