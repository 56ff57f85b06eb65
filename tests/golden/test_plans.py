"""Every suite, as the plan.json that a job gets."""

import json
from pathlib import Path

import jsonschema
import pytest

from nemotron.config import suite_names
from tests.golden.regenerate import PLANS, plan_of, text_of

SCHEMA = Path(__file__).parents[2] / "harness/nemo_evaluator/schemas/plan.schema.json"


@pytest.mark.parametrize("suite", suite_names())
def test_a_suite_is_the_plan_that_was_reviewed(suite):
    assert text_of(suite) == (PLANS / f"{suite}.json").read_text()


@pytest.mark.parametrize("suite", suite_names())
def test_every_plan_is_one_by_the_schema(suite):
    schema = json.loads(SCHEMA.read_text())
    jsonschema.validate(plan_of(suite), schema, format_checker=jsonschema.FormatChecker())


def test_no_plan_is_left_of_a_suite_that_is_gone():
    assert sorted(path.stem for path in PLANS.glob("*.json")) == suite_names()
