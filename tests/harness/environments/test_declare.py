import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from nemo_evaluator.environments import EvalEnvironment, ScorerInput, SeedResult, benchmark, scorer
from nemo_evaluator.environments.registry import resolve
from nemo_evaluator.errors import EvaluationError, UsageError

ROWS = [{"question": "2+2?", "target": "4", "category": "sums"}, {"question": "3+3?", "target": 6, "category": "sums"}]


@scorer
def equal(sample: ScorerInput) -> bool:
    return sample.response.strip() == sample.target


@scorer
def reveal(sample: ScorerInput) -> dict[str, Any]:
    return {"correct": True, "seen": sample}


def declare(
    judge: Any = equal, rows: Any = ROWS, params: dict[str, Any] | None = None, **options: Any
) -> EvalEnvironment:
    """A benchmark of the test's own; a param that is not an option of `@benchmark` goes to `extra`."""
    benchmark("declared", **{"dataset": lambda: rows, "prompt": "Q: {question}", **options})(judge)
    return resolve("declared", params or {})


async def verify(environment: EvalEnvironment, response: str, idx: int = 0) -> Any:
    return await environment.verify_sample(await environment.seed(idx), response)


async def seen_by(environment: EvalEnvironment, response: str = "") -> ScorerInput:
    return (await verify(environment, response)).scoring_details["seen"]


async def test_a_declaration_is_an_environment() -> None:
    environment = declare(system_prompt="Be brief.", endpoint_type="completions")
    await environment.prepare()

    assert (environment.name, environment.endpoint_type, len(environment)) == ("declared", "completions", 2)
    assert await environment.seed(0) == SeedResult(
        "Q: 2+2?", "4", {"question": "2+2?", "category": "sums"}, system="Be brief."
    )
    assert (await environment.seed(1)).expected_answer == "6"
    assert (await verify(environment, " 4")).reward == 1.0
    assert (await verify(environment, "5")).reward == 0.0


async def test_the_scorer_remains_a_function() -> None:
    declare()
    assert equal(ScorerInput("4", "4")) is True


@pytest.mark.parametrize(
    ("verdict", "reward"),
    [
        ({"correct": True}, 1.0),
        ({"reward": 0.5, "note": "half"}, 0.5),
        ({"note": 3, "correct": False, "reward": 1}, 0.0),
        ({"f1": 0.25, "em": 1}, 0.25),
        (True, 1.0),
        (0.75, 0.75),
        (1, 1.0),
    ],
)
async def test_what_a_scorer_may_return(verdict: Any, reward: float) -> None:
    result = await verify(declare(scorer(lambda sample: verdict)), "")

    assert result.reward == reward
    details = verdict if isinstance(verdict, dict) else {"correct": verdict}
    assert result.scoring_details == {"method": "byob_declared", **details}


@pytest.mark.parametrize(
    "verdict", [None, {}, "yes", {"correct": None}, {"reward": float("nan")}, {"note": "fine"}, [1]]
)
async def test_what_is_no_verdict_is_an_error_and_never_a_zero(verdict: Any) -> None:
    with pytest.raises(EvaluationError, match="The scorer of 'declared' returned"):
        await verify(declare(scorer(lambda sample: verdict)), "")


async def test_the_extracted_answer_is_text() -> None:
    result = await verify(declare(scorer(lambda sample: {"correct": True, "extracted": 4, "method": "mine"})), "")

    assert (result.extracted_answer, result.scoring_details["method"]) == ("4", "mine")


async def test_a_scorer_may_be_async() -> None:
    @scorer
    async def later(sample: ScorerInput) -> bool:
        await asyncio.sleep(0)
        return True

    assert (await verify(declare(later), "")).reward == 1.0


async def test_columns_named_like_parameters_break_nothing() -> None:
    row = {"question": "?", "target": "4", "response": 1, "expected": 2, "sandbox": 3, "self": 4}

    sample = await seen_by(declare(reveal, [row]), "yes")

    assert (sample.response, sample.target, sample.sandbox) == ("yes", "4", None)
    assert sample.metadata == {"question": "?", "response": 1, "expected": 2, "sandbox": 3, "self": 4}


async def test_braces_in_prompt_and_rows_break_nothing() -> None:
    environment = declare(
        rows=[{"question": 'what is {"b": {}}', "target": ""}], prompt='Reply {"a": {"n": 1}}: {question}'
    )

    assert (await environment.seed(0)).prompt == 'Reply {"a": {"n": 1}}: what is {"b": {}}'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt": "{qestion}"}, r"asks for \{qestion\} but the row has no such column; it has: question, target"),
        ({"target_field": "gold"}, "no target column 'gold'; it has: question, target, category"),
        ({"rows": []}, "has no rows"),
        ({"requirements": ["no-such-package>=2"]}, "needs no-such-package>=2. Run: pip install 'no-such-package>=2'"),
        ({"prepare_row": lambda row, idx, rng: None}, "prepare_row returned NoneType"),
        ({"dataset": "no-such.jsonl"}, "No dataset file 'no-such.jsonl'"),
        ({"prompt": "p.jinja"}, "templates are .txt or .md files"),
    ],
)
async def test_what_every_sample_would_meet_is_met_while_preparing(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        await declare(**options).prepare()


def broken_rows() -> list[dict[str, Any]]:
    return [{"question": 1 / 0}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": broken_rows}, "ZeroDivisionError: division by zero"),
        ({"prepare_row": lambda row, idx, rng: {"question": row["qestion"]}}, "KeyError: 'qestion'"),
        ({"seed_fn": lambda row, idx: SeedResult(row["qestion"])}, "KeyError: 'qestion'"),
    ],
)
async def test_an_exception_of_the_users_code_is_one_line_with_its_place(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        await declare(**options).prepare()
    assert str(caught.value).startswith(f"Benchmark 'declared' cannot make its first problem: {message} ({__file__}:")


async def test_requirements_are_distributions() -> None:
    await declare(requirements=["PyYAML>=6", "pytest"]).prepare()


async def test_fields_can_be_mapped() -> None:
    environment = declare(rows=[{"q": "2+2?", "a": "4"}], field_mapping={"q": "question", "a": "target"})

    assert await environment.seed(0) == SeedResult("Q: 2+2?", "4", {"question": "2+2?"})


async def test_the_randomness_of_a_row_depends_on_the_row_alone() -> None:
    def shuffled(row: dict[str, Any], idx: int, rng: Any) -> dict[str, Any]:
        return {**row, "order": rng.sample(range(100), 5)}

    first, second = (declare(rows=ROWS, prepare_row=shuffled) for _ in range(2))
    forwards = [(await first.seed(idx)).metadata["order"] for idx in (0, 1)]
    backwards = [(await second.seed(idx)).metadata["order"] for idx in (1, 0)]

    assert forwards == backwards[::-1]
    assert forwards[0] != forwards[1]


async def test_seed_fn_bypasses_the_prompt() -> None:
    environment = declare(prompt="", seed_fn=lambda row, idx: SeedResult(f"{idx}: {row['question']}", "x"))

    assert await environment.seed(1) == SeedResult("1: 3+3?", "x")


async def test_metadata_can_be_chosen() -> None:
    assert (await declare(metadata=("category", "id")).seed(0)).metadata == {"category": "sums"}


async def test_unknown_keywords_are_config_and_params_overlay_them() -> None:
    environment = declare(reveal, extra={"a": 1}, level=2, params={"level": 3})

    assert (await seen_by(environment)).config == {"a": 1, "level": 3}
    with pytest.raises(UsageError, match=r"'declared' has no param 'levle'; accepted: a, level\."):
        resolve("declared", {"levle": 3})


async def test_only_a_hub_dataset_takes_a_revision(tmp_path: Path) -> None:
    declare(dataset="org/name", params={"revision": "main"})
    with pytest.raises(UsageError, match="no param 'revision'; accepted: none"):
        declare(dataset="rows.jsonl", params={"revision": "main"})


async def test_thinking_is_not_scored() -> None:
    environment = declare(reveal)

    assert (await seen_by(environment, "<think>4</think>5")).response == "5"
    assert environment.provenance()["strip_reasoning"] == ["<think>", "</think>"]


async def test_unclosed_thinking_is_no_answer_and_says_so() -> None:
    result = await verify(declare(), "<think>4")

    assert result.reward == 0.0
    assert result.scoring_details["unclosed_reasoning"] is True


async def test_stripping_can_be_switched_off_or_given_other_tags() -> None:
    raw, other = declare(reveal, strip_reasoning=False), declare(reveal, think_tags=("[T]", "[/T]"))

    assert (await seen_by(raw, "<think>4</think>5")).response == "<think>4</think>5"
    assert (await seen_by(other, "[T]4[/T]5")).response == "5"
    assert raw.provenance()["strip_reasoning"] is False


@pytest.mark.parametrize(
    ("took", "in_a_thread"),
    [
        ([0.03] * 5, [False, False, False, True, True]),
        ([0.3] * 3, [False, True, True]),
        ([0.03, 0.03, 0, 0.03, 0.03, 0], [False] * 6),
    ],
    ids=["slow", "very slow", "held up now and then"],
)
async def test_a_slow_scorer_is_moved_to_a_thread(took: list[float], in_a_thread: list[bool]) -> None:
    threads, seconds = [], iter(took)

    @scorer
    def slow(sample: ScorerInput) -> bool:
        threads.append(threading.current_thread())
        time.sleep(next(seconds))
        return True

    environment = declare(slow)
    for _ in took:
        await verify(environment, "")

    assert [thread is not threading.main_thread() for thread in threads] == in_a_thread


async def test_an_exception_of_the_scorer_reaches_the_engine() -> None:
    @scorer
    def broken(sample: ScorerInput) -> bool:
        raise KeyError("gold")

    with pytest.raises(KeyError):
        await verify(declare(broken), "")


@pytest.mark.parametrize(
    ("gold", "response"),
    [("Answer: {expected} ({category})", "Answer: 4 (sums)"), (lambda seed: seed.expected_answer, "4"), (None, None)],
)
async def test_the_gold_response(gold: Any, response: str | None) -> None:
    assert await declare(gold=gold).gold_response(0) == response


async def test_the_provenance_changes_with_what_is_asked_and_with_nothing_else() -> None:
    first, same = declare(), declare()
    others = [
        declare(prompt="{question}"),
        declare(system_prompt="!"),
        declare(seed_fn=lambda row, idx: SeedResult("?")),
    ]

    assert first.provenance() == same.provenance()
    assert len({environment.provenance()["prompt_sha256"] for environment in (first, *others)}) == 4
    assert first.provenance()["scorer"] == "equal"


async def test_the_provenance_holds_no_addresses() -> None:
    assert declare(extra={"parse": object()}).provenance()["params"] == {"parse": "object"}


async def test_the_rows_are_loaded_outside_the_event_loop() -> None:
    threads = []

    def rows() -> list[dict[str, Any]]:
        threads.append(threading.current_thread())
        return ROWS

    await declare(dataset=rows).prepare()

    assert threads != [threading.main_thread()]


def test_the_size_is_known_without_preparing() -> None:
    assert len(declare()) == 2


def test_a_scorer_takes_one_argument() -> None:
    with pytest.raises(
        UsageError, match="Scorer 'two' must take one argument, a ScorerInput; it takes 2: response, target"
    ):

        @scorer
        def two(response: str, target: str) -> bool:
            return True


def test_benchmark_goes_above_scorer() -> None:
    with pytest.raises(UsageError, match="'wrong': put @scorer between @benchmark and the function"):

        @benchmark("wrong", dataset="org/name")
        def wrong(sample: ScorerInput) -> bool:
            return True


def test_an_unknown_endpoint_type_is_refused() -> None:
    with pytest.raises(UsageError, match=r"endpoint_type 'chatt' is not one of .'chat', 'completions'"):
        benchmark("wrong", dataset="org/name", endpoint_type="chatt")
