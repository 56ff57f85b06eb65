"""A task as a command line, and the YAML that carries what a command line would spoil."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nemo_evaluator.direct.command import build_command, to_yaml
from nemo_evaluator.direct.plan import PARAMS, parse_plan
from tests.harness.direct.world import URL, plan_document, task_document

CHARACTERS = st.characters(exclude_categories=("Cs",))
TEXTS = st.text(CHARACTERS)
KEYS = st.text(CHARACTERS, max_size=80)
"""YAML reads no key of more than 1,024 characters, and a character may need ten."""
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
EXTRAS = st.dictionaries(KEYS, PLAIN | st.lists(PLAIN, max_size=2), max_size=3)


def command_of(params, adapter_config=None, **model):
    plan = parse_plan(plan_document("/results", [task_document("gsm8k", params, adapter_config)], model=model))
    return build_command(plan, plan.tasks[0], "/bin/nemo-evaluator", URL)


def overrides(command):
    """As the harness reads them: split at commas outside of quotes, every value as YAML."""
    text = command.argv[command.argv.index("--overrides") + 1]
    assert not set("'\" ") & set(text)
    return {key: yaml.safe_load(value) for key, _, value in (pair.partition("=") for pair in text.split(","))}


@given(VALUES)
def test_a_yaml_reader_gets_back_every_value(value):
    text = to_yaml(value)
    assert text.isascii() and yaml.safe_load(text) == value


@given(EXTRAS)
def test_every_extra_argument_arrives_on_one_of_two_ways(extra):
    command = command_of({"extra": extra})
    arrived = {} if command.run_config is None else yaml.safe_load(command.run_config)["config"]["params"]["extra"]
    for path, value in overrides(command).items():
        if path.startswith("config.params.extra."):
            arrived[path.removeprefix("config.params.extra.")] = value
    assert arrived == {key: value for key, value in extra.items() if value is not None}


def test_the_whole_command():
    command = command_of({"limit_samples": 5, "temperature": 0.0, "top_p": None, "extra": {"tokenizer": "a/b-c_1.2"}})
    assert command.run_config is None
    assert command.argv == [
        *("/bin/nemo-evaluator", "run_eval", "--eval_type", "gsm8k", "--model_id", "fake-model"),
        *("--model_type", "completions", "--model_url", URL, "--output_dir", "/results/gsm8k"),
        *("--api_key_name", "ENDPOINT_TOKEN", "--overrides"),
        "config.params.limit_samples=5,config.params.temperature=0.0,config.params.extra.tokenizer=a/b-c_1.2,"
        "target.api_endpoint.adapter_config.output_dir=/results/gsm8k/adapter,"
        "target.api_endpoint.adapter_config.endpoint_type=completions",
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    {
        "task": "mmlu_prox_de",
        "limit_samples": 7,
        "parallelism": 3,
        "request_timeout": 60,
        "max_retries": 2,
        "temperature": 0.5,
        "top_p": 0.9,
        "max_new_tokens": 64,
    }.items(),
)
def test_every_parameter_reaches_the_harness(key, value):
    assert overrides(command_of({key: value}))[f"config.params.{key}"] == value
    assert {key} < set(PARAMS)


def test_a_chain_of_interceptors_is_left_as_it_is():
    chain = {"interceptors": [{"name": "endpoint", "config": {}}]}
    command = command_of({}, chain)
    sent = yaml.safe_load(command.run_config)["target"]["api_endpoint"]["adapter_config"]
    assert sent == chain and "adapter_config.output_dir" not in " ".join(command.argv)


def test_an_endpoint_without_authentication_gets_no_key_name():
    assert "--api_key_name" not in command_of({}, api_key_name=None).argv


def test_what_the_adapter_was_told_stays():
    told = overrides(command_of({}, {"output_dir": "/elsewhere", "endpoint_type": "chat", "use_caching": True}))
    place = "target.api_endpoint.adapter_config"
    assert told == {f"{place}.output_dir": "/elsewhere", f"{place}.endpoint_type": "chat", f"{place}.use_caching": True}


def test_a_list_and_a_text_that_looks_like_a_number_go_by_file():
    command = command_of({"extra": {"list": [1], "tag": "26.03", "word": "null", "equals": "a=b"}})
    assert yaml.safe_load(command.run_config) == {
        "config": {"params": {"extra": {"list": [1], "tag": "26.03", "word": "null", "equals": "a=b"}}}
    }
    assert command.argv[command.argv.index("--run_config") + 1] == "/results/gsm8k/run_config.direct.yml"
