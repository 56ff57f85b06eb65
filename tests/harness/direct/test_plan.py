"""plan.json: read by hand inside the job, and held against its schema here."""

import json

import jsonschema
import pytest

from nemo_evaluator.direct.errors import Refused
from nemo_evaluator.direct.plan import parse_plan, read_plan
from tests.harness.direct.world import PACKAGE, plan_document, task_document, validate

SCHEMA = json.loads((PACKAGE / "schemas/plan.schema.json").read_text())


def refusal(document):
    with pytest.raises(Refused) as caught:
        parse_plan(document)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def objects(document, path=()):
    """Every object of the plan that has a fixed set of keys, by its place."""
    for key, value in document.items():
        here = (*path, key)
        if isinstance(value, dict) and key not in ("params", "adapter_config"):
            yield from objects(value, here)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            yield from objects(value[0], (*here, 0))
    yield path


def at(document, path):
    for key in path:
        document = document[key]
    return document


PLACES = list(objects(plan_document("/results")))
KEYS = [(*path, key) for path in PLACES for key in at(plan_document("/results"), path)]


def test_reads_a_plan_that_fits_the_schema():
    plan = parse_plan(validate("plan", plan_document("/results")))
    assert plan.model.id == "fake-model" and plan.tasks[0].params["limit_samples"] == 5


@pytest.mark.parametrize("path", KEYS, ids=lambda path: ".".join(map(str, path)))
def test_a_missing_key_is_named(path):
    document = plan_document("/results")
    del at(document, path[:-1])[path[-1]]
    assert path[-1] in refusal(document)
    with pytest.raises(jsonschema.ValidationError):
        validate("plan", document)


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)) or "plan")
def test_an_unknown_key_is_named(path):
    document = plan_document("/results")
    at(document, path)["surprise"] = 1
    assert "surprise" in refusal(document)
    with pytest.raises(jsonschema.ValidationError):
        validate("plan", document)


@pytest.mark.parametrize("path", KEYS, ids=lambda path: ".".join(map(str, path)))
def test_a_value_of_another_type_is_named(path):
    document = plan_document("/results")
    at(document, path[:-1])[path[-1]] = 1.5
    assert path[-1] in refusal(document)
    with pytest.raises(jsonschema.ValidationError):
        validate("plan", document)


@pytest.mark.parametrize("version", [0, 2, True, "1"])
def test_another_version_is_refused_before_anything_else_is_read(version):
    assert "schema_version" in refusal({"schema_version": version, "something": "else"})


def test_a_variable_that_is_no_name_is_refused():
    assert "secrets" in refusal(plan_document("/results", secrets=[""]))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema_version": 1'])
def test_a_file_that_is_no_plan_is_refused(tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(Refused):
        read_plan(tmp_path / "plan.json")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(Refused, match=r"plan\.json cannot be read"):
        read_plan(tmp_path / "plan.json")


def test_an_empty_text_counts_as_unset():
    assert parse_plan(plan_document("/results", model={"api_key_name": ""})).model.api_key_name is None


@pytest.mark.parametrize("url", ["https://me:word@host/v1/completions", "https://host/v1/completions?key=x"])
def test_the_schema_keeps_a_secret_url_out_of_the_plan(url):
    with pytest.raises(jsonschema.ValidationError):
        validate("plan", plan_document("/results", model={"endpoint_url": url}))


@pytest.mark.parametrize("params", [{"limit": 5}, {"parallelism": 0}, {"temperature": "warm"}])
def test_the_schema_knows_the_params(params):
    with pytest.raises(jsonschema.ValidationError):
        validate("plan", plan_document("/results", [task_document("gsm8k", params)]))
