"""Files of a run: what the schemas promise, and what readers can rely on."""

import json
import re
from importlib.resources import files

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

from nemo_evaluator.engine import ModelClient, run_evaluation, write_all
from nemo_evaluator.errors import UsageError
from nemo_evaluator.models import RetryPolicy
from nemo_evaluator.results.bundle import Columns
from nemo_evaluator.results.failures import failure_category
from nemo_evaluator.results.find import find_bundles, read_bundle
from nemo_evaluator.solvers import ChatSolver
from tests.fakes.openai_server import Behaviour, FakeServer, When
from tests.harness.engine.worlds import Calculator, Doubles, right_answer

SCHEMAS = {
    path.name.removesuffix(".schema.json"): json.loads(path.read_text())
    for path in files("nemo_evaluator.schemas").iterdir()
    if path.name.endswith(".schema.json")
}
REGISTRY = Registry().with_resources((schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values())


def validate(name, value):
    Draft202012Validator(SCHEMAS[name], registry=REGISTRY, format_checker=FormatChecker()).validate(value)


@pytest.fixture
async def mixed(tmp_path):
    """A run with right, wrong, cut, empty and failed samples, written to disk."""
    behaviours = [
        Behaviour(status=500, when=When(prompt="Problem 3:")),
        Behaviour(shape={"finish_reason": "length"}, when=When(prompt="Problem 4:")),
    ]

    def answer(request):
        texts = {5: "", 6: "I'm sorry, I cannot help.", 7: "no number", 8: "It is 1."}
        number = int(request.prompt.split()[1].rstrip(":"))
        return texts.get(number, right_answer(request))

    async with FakeServer(*behaviours, answer=answer) as server:
        client = ModelClient(server.url, "fake-model", "", retry=RetryPolicy.bounded(0))
        bundle = await run_evaluation(
            Doubles(12), ChatSolver(client), n_repeats=2, output_dir=tmp_path / "Doubles", max_error_rate=0.5
        )
    return write_all(bundle, tmp_path / "Doubles")


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_schemas(name):
    Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["$id"] == f"urn:nemo-evaluator:{name}:1"


def test_every_file_keeps_its_schema(mixed):
    folder = mixed.parent
    validate("bundle", json.loads(mixed.read_text()))
    validate("runtime_stats", json.loads((folder / "runtime_stats.json").read_text()))
    validate("failure_analysis", json.loads((folder / "failure_analysis.json").read_text()))
    for name, schema in (("results", "results_row"), ("trajectories", "trajectory_row")):
        lines = (folder / f"{name}.jsonl").read_text().splitlines()
        assert len(lines) == 24
        for line in lines:
            validate(schema, json.loads(line))


async def test_a_run_without_errors_keeps_the_schema_too(tmp_path):
    path = write_all(await run_evaluation(Doubles(3), Calculator()), tmp_path)
    validate("bundle", json.loads(path.read_text()))


def test_failures_are_told_apart(mixed):
    failures = json.loads((mixed.parent / "failure_analysis.json").read_text())
    counts = {name: category["count"] for name, category in failures["categories"].items()}
    assert counts == {"error:server": 2, "empty": 2, "refusal": 2, "format_error": 2}
    assert failures["total_failures"] == 8 and failures["total_steps"] == 24


def test_a_right_answer_is_no_failure_whatever_words_it_holds():
    """7.1 item 24."""
    record = {"state": "scored", "reward": 1.0, "extracted_answer": None, "response": "I cannot be sure, but 4."}
    assert failure_category(record) is None
    assert failure_category(record | {"reward": 0.0}) == "refusal"


def test_categories_have_scores_of_their_own(mixed):
    categories = json.loads(mixed.read_text())["benchmark"]["categories"]
    assert set(categories) == {"even", "odd"}
    assert categories["odd"]["n"] == 10  # 6 odd problems twice, one of them without a score


def test_scoring_details_with_few_values_are_broken_down():
    columns = Columns()
    for i in range(200):
        details = {"method": "boxed" if i % 4 else "last", "id": f"item {i}", "text": "x" * 200, "ok": i % 2 == 0}
        columns.add({"problem_idx": i, "repeat": 0, "reward": 1.0, "scoring_details": details, "seed_metadata": {}})
    found = columns.breakdowns()
    assert set(found) == {"method", "ok"}
    assert {row["group"]: row["n"] for row in found["method"]} == {"boxed": 150, "last": 50}


def test_bundles_are_found_by_folder_file_and_pattern(mixed, tmp_path):
    for where in (tmp_path, mixed, f"{tmp_path}/*/eval-*.json"):
        (found,) = find_bundles(where)
        assert found.path == mixed and found.benchmark == "Doubles"
        assert len(list(found.rows())) == 24


def test_a_bundle_of_another_harness_with_the_minimal_contract_is_read(tmp_path):
    (tmp_path / "eval-theirs.json").write_text('{"benchmark": {"name": "theirs"}}')
    (tmp_path / "results.jsonl").write_text(
        '{"problem_idx": 0, "reward": 0.5}\n{"problem_idx": 1, "repeat": 2, "reward": 1.0}\n'
    )
    (bundle,) = find_bundles(tmp_path)
    assert list(bundle.rows()) == [
        {"problem_idx": 0, "repeat": 0, "reward": 0.5},
        {"problem_idx": 1, "repeat": 2, "reward": 1.0},
    ]


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"benchmark": {}}'])
def test_a_file_that_is_no_bundle_is_named(tmp_path, content):
    path = tmp_path / "eval-bad.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=r"eval-bad\.json"):
        read_bundle(path)


def test_a_folder_without_bundles_says_what_to_name(tmp_path):
    with pytest.raises(UsageError, match="nel eval run"):
        find_bundles(tmp_path)


def test_a_row_without_reward_names_file_and_line(tmp_path):
    (tmp_path / "eval-x.json").write_text('{"benchmark": {"name": "x"}}')
    (tmp_path / "results.jsonl").write_text('{"problem_idx": 0, "reward": 1}\n{"problem_idx": 1}\n')
    (bundle,) = find_bundles(tmp_path)
    with pytest.raises(UsageError, match=r"results\.jsonl:2"):
        list(bundle.rows())


async def test_metadata_of_any_kind_is_written(tmp_path):
    class Odd(Doubles):
        async def seed(self, idx):
            seed = await super().seed(idx)
            seed.metadata |= {"big": 10**40, "set": {1}, 7: "number key", "lone": "\ud800", "path": tmp_path}
            return seed

    bundle = await run_evaluation(Odd(2), Calculator(), output_dir=tmp_path / "run")
    write_all(bundle, tmp_path / "run")
    assert bundle["results"][1]["metadata"]["big"] == str(10**40)


@pytest.mark.parametrize("folder", [None, "some/where"])
async def test_a_bundle_is_named_after_its_benchmark(tmp_path, folder):
    """Whatever the folder is called, also one that is there for the run only."""

    class Named(Doubles):
        name = "skills:doubles/even"

    bundle = await run_evaluation(Named(1), Calculator(), output_dir=folder and tmp_path / folder)
    path = write_all(bundle, tmp_path / "written")
    assert re.fullmatch(r"eval-\d{8}T\d{6}Z-[0-9a-f]{4}-skills_doubles_even\.json", path.name)
