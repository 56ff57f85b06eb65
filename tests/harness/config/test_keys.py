"""Every key: what is accepted arrives, what is refused is refused in one line with file and line."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from nemo_evaluator.config.compose import prune_nulls
from nemo_evaluator.config.document import parse
from nemo_evaluator.config.keypath import KeyPath, dotted, parse_path
from nemo_evaluator.config.load import validate
from nemo_evaluator.config.model import EvalConfig, Generation
from nemo_evaluator.config.overrides import Override, apply_override
from nemo_evaluator.errors import UsageError
from tests.harness.config.conftest import SMALLEST, Load

CUSTOM = """\
services:
  m: {type: api, url: "http://localhost:8000/v1", protocol: completions, model: tiny}
benchmarks:
  - name: gsm8k
    solver: {type: custom, class_path: "mine:Solver"}
"""


def with_value(text: str, key: str, value: Any) -> tuple[str, int]:
    """The YAML with `value` at `key`, and the line that it is on."""
    data = yaml.safe_load(text)
    container, path = data, parse_path(key)
    for part in path[:-1]:
        container = container.setdefault(part, {}) if isinstance(container, dict) else container[part]
    container[path[-1]] = "SENTINEL"
    lines = yaml.safe_dump(data, sort_keys=False).splitlines()
    number = next(number for number, line in enumerate(lines, start=1) if "SENTINEL" in line)
    inline = yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("...\n").strip()
    return "\n".join(lines).replace("SENTINEL", inline), number


def value_at(config: Any, path: KeyPath) -> Any:
    for part in path:
        config = getattr(config, str(part)) if isinstance(config, BaseModel) else config[part]
    return config.get_secret_value() if isinstance(config, SecretStr) else config


GENERATION = {
    "temperature": 0.7,
    "top_p": 0.9,
    "max_tokens": 100,
    "seed": 7,
    "stop": ["\n\n"],
    "frequency_penalty": -2,
    "presence_penalty": 2,
}
SERVICE = "services.m."
BENCHMARK = "benchmarks[0]."

ACCEPTED = {
    SERVICE + "type": "api",
    SERVICE + "url": "https://host.example/v1/chat/completions",
    SERVICE + "protocol": "chat_completions",
    SERVICE + "model": "org/model-7b",
    SERVICE + "api_key": "sk-not-a-real-key",
    SERVICE + "max_output_tokens": 2048,
    **{f"{SERVICE}generation.{key}": value for key, value in GENERATION.items()},
    SERVICE + "proxy.request_timeout": 600,
    SERVICE + "proxy.max_retries": 0,
    SERVICE + "proxy.max_concurrent_upstream": 8,
    SERVICE + "proxy.extra_body": {"chat_template_kwargs": {"thinking": None}},
    SERVICE + "proxy.extra_headers": {"X-Team": "evals"},
    SERVICE + "ca_bundle": "/etc/ca.pem",
    SERVICE + "reasoning_pattern": "<think>.*?</think>",
    BENCHMARK + "name": "mmlu",
    BENCHMARK + "solver.type": "simple",
    BENCHMARK + "solver.service": "m",
    BENCHMARK + "solver.system_prompt": "",
    **{f"{BENCHMARK}solver.generation.{key}": value for key, value in GENERATION.items()},
    BENCHMARK + "repeats": 4,
    BENCHMARK + "max_problems": 10,
    BENCHMARK + "max_concurrent": 64,
    BENCHMARK + "timeout": 60.5,
    BENCHMARK + "shuffle_seed": 0,
    BENCHMARK + "problem_range": (5, 10),
    BENCHMARK + "max_error_rate": 0,
    BENCHMARK + "params": {"split": None, "n": 3},
    "cluster.type": "local",
    "output.dir": "out/run 1",
    "output.progress_interval": 5,
    "output.timestamped": True,
}
ACCEPTED_CUSTOM = {
    BENCHMARK + "solver.type": "custom",
    BENCHMARK + "solver.service": "m",
    BENCHMARK + "solver.class_path": "mine:Solver",
    BENCHMARK + "solver.config": {"depth": 2, "tool": None},
}


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [(SMALLEST, *item) for item in ACCEPTED.items()] + [(CUSTOM, *item) for item in ACCEPTED_CUSTOM.items()],
)
def test_accepted_value_arrives(load: Load, text: str, key: str, value: Any) -> None:
    changed, _ = with_value(text, key, list(value) if isinstance(value, tuple) else value)
    assert value_at(load(changed).config, parse_path(key)) == value


def keys_of(annotation: Any, path: str) -> Iterator[str]:
    """Every key that the model knows, with m for the service and [0] for the benchmark."""
    members = [annotation, *get_args(annotation)]
    models = [member for member in members if isinstance(member, type) and issubclass(member, BaseModel)]
    if not models:
        yield path
    inner = {"services": "services.m", "benchmarks": "benchmarks[0]"}.get(path, path)
    for model in models:
        for name, field in model.model_fields.items():
            yield from keys_of(field.annotation, f"{inner}.{name}" if inner else name)


def test_every_key_of_the_model_is_in_the_table_above() -> None:
    assert set(keys_of(EvalConfig, "")) == set(ACCEPTED) | set(ACCEPTED_CUSTOM)


WHOLE, NUMBER, TEXT = "a whole number is expected", "a number is expected", "text is expected"

REFUSED = [
    (
        SERVICE + "type",
        "vllm",
        "not available in this version: start the server yourself and use type api; accepted: api",
    ),
    (SERVICE + "type", "gym", "only endpoints of models are services; accepted: api"),
    (SERVICE + "type", "apii", "is 'apii'; accepted: api"),
    (SERVICE + "url", "ftp://host", "write http://HOST or https://HOST"),
    (SERVICE + "url", "http://", "write http://HOST or https://HOST"),
    (SERVICE + "url", "http://host:99999", "write http://HOST or https://HOST"),
    (SERVICE + "url", "localhost:8000", "write http://HOST or https://HOST"),
    (SERVICE + "url", "http://h/v1/completions", "ends like protocol completions, but protocol is chat_completions"),
    (SERVICE + "url", "http://h/v1/responses", "ends like protocol responses, but protocol is chat_completions"),
    (SERVICE + "protocol", "responses", "not available in this version: requests go to /chat/completions or"),
    (SERVICE + "protocol", "chat", "is 'chat'; accepted: chat_completions, completions"),
    (SERVICE + "model", 4, TEXT),
    (SERVICE + "model", "", "it must not be empty"),
    (SERVICE + "api_key", 12345, "is a value that is not shown; text is expected"),
    (SERVICE + "max_output_tokens", 0, "is 0; it must be at least 1"),
    (SERVICE + "ca_bundle", "", "it must not be empty"),
    (SERVICE + "reasoning_pattern", "(", "is no regular expression"),
    (SERVICE + "proxy", [], "is []; a mapping of keys is expected"),
    (SERVICE + "proxy.request_timeout", 0, "it must be more than 0"),
    (SERVICE + "proxy.request_timeout", float("inf"), "a finite number is expected"),
    (SERVICE + "proxy.max_retries", -1, "it must be at least 0"),
    (SERVICE + "proxy.max_concurrent_upstream", 0, "it must be at least 1"),
    (SERVICE + "proxy.extra_body", "x", "a mapping of keys is expected"),
    (SERVICE + "proxy.extra_headers", [], "a mapping of keys is expected"),
    (SERVICE + "generation.temperature", 2.1, "it must be at most 2"),
    (SERVICE + "generation.temperature", "hot", NUMBER),
    (SERVICE + "generation.top_p", 1.5, "it must be at most 1"),
    (SERVICE + "generation.top_p", float("nan"), "a finite number is expected"),
    (SERVICE + "generation.max_tokens", 0, "it must be at least 1"),
    (SERVICE + "generation.max_tokens", 1.5, WHOLE),
    (SERVICE + "generation.seed", True, NUMBER),
    (SERVICE + "generation.stop", {"a": 1}, "a list is expected"),
    (SERVICE + "generation.frequency_penalty", -3, "it must be at least -2"),
    (SERVICE + "generation.presence_penalty", 3, "it must be at most 2"),
    (BENCHMARK + "name", "", "it must not be empty"),
    (BENCHMARK + "solver", "simple", "a mapping of keys is expected"),
    (BENCHMARK + "solver.type", "harbor", "agents need a sandbox; accepted: simple, custom"),
    (BENCHMARK + "solver.type", "smple", "is 'smple'; accepted: simple, custom"),
    (BENCHMARK + "solver.service", "mm", "is 'mm', which is no service (did you mean 'm'?); services: m"),
    (BENCHMARK + "solver.system_prompt", ["x"], TEXT),
    (BENCHMARK + "repeats", 0, "is 0; it must be at least 1"),
    (BENCHMARK + "repeats", True, NUMBER),
    (BENCHMARK + "max_problems", "many", WHOLE),
    (BENCHMARK + "max_concurrent", 0, "it must be at least 1"),
    (BENCHMARK + "timeout", -5, "it must be more than 0"),
    (BENCHMARK + "shuffle_seed", "x", WHOLE),
    (BENCHMARK + "problem_range", [1], "a list of two numbers is expected"),
    (BENCHMARK + "problem_range", [1, 2, 3], "a list of two numbers is expected"),
    (BENCHMARK + "problem_range", 7, "a list of two numbers is expected"),
    (BENCHMARK + "problem_range", [4, 4], "holds no problem; the end must be above the start"),
    (BENCHMARK + "max_error_rate", 1.1, "it must be at most 1"),
    (BENCHMARK + "params", [], "a mapping of keys is expected"),
    ("cluster.type", "slurm", "is 'slurm', which is not available in this version"),
    ("output.dir", "", "it must not be empty"),
    ("output.progress_interval", 0, "it must be more than 0"),
    ("output.timestamped", "maybe", "true or false is expected"),
    ("benchmarks", [], "is []; at least one is needed"),
    ("services", [], "a mapping of keys is expected"),
]


@pytest.mark.parametrize(("key", "value", "reason"), REFUSED)
def test_refused_value_is_one_line_with_file_and_line(load: Load, key: str, value: Any, reason: str) -> None:
    text, line = with_value(SMALLEST, key, value)
    with pytest.raises(UsageError) as refusal:
        load(text)
    assert str(refusal.value).splitlines() == [str(refusal.value)]
    assert str(refusal.value).startswith(f"run.yaml:{line}: {dotted(parse_path(key))} ")
    assert reason in str(refusal.value)


UNAVAILABLE = [
    *(SERVICE + key for key in ("health_path", "max_input_tokens", "tokenizer")),
    *(SERVICE + "proxy." + key for key in ("interceptors", "verbose", "retry_on_status", "model_traffic")),
    *(BENCHMARK + key for key in ("skip_failed", "fewshot", "scoring", "sandbox", "verifier", "playbook")),
    *(BENCHMARK + key for key in ("max_system_retries", "context_window", "instruction_template")),
    *("output." + key for key in ("report", "export", "export_config", "trajectories")),
    *("cluster." + key for key in ("gpus", "max_memory", "container_env")),
    SERVICE + "proxy.finish_reason_fixup",
    BENCHMARK + "solver.image_detail",
    "sandboxes",
]


@pytest.mark.parametrize("key", UNAVAILABLE)
def test_key_of_larger_set_ups_is_refused_by_name(load: Load, key: str) -> None:
    text, line = with_value(SMALLEST, key, "x")
    with pytest.raises(UsageError, match=rf"^run\.yaml:{line}: .* is not available in this version: \w"):
        load(text)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        (SERVICE + "api_keey", "is not a known key (did you mean 'api_key'?); accepted: type, url, protocol,"),
        (SERVICE + "proxy.extra_bdy", "(did you mean 'extra_body'?)"),
        (SERVICE + "generation.temprature", "(did you mean 'temperature'?)"),
        (BENCHMARK + "repeat", "(did you mean 'repeats'?)"),
        (BENCHMARK + "solver.sytem_prompt", "(did you mean 'system_prompt'?)"),
        (BENCHMARK + "solver.generation.top_k", "accepted: temperature, top_p,"),
        ("output.zzz", "is not a known key; accepted: dir, progress_interval, timestamped"),
        ("servces", "(did you mean 'services'?)"),
    ],
)
def test_unknown_key_names_the_nearest_one(load: Load, key: str, hint: str) -> None:
    text, line = with_value(SMALLEST, key, "x")
    with pytest.raises(UsageError) as refusal:
        load(text)
    assert str(refusal.value).startswith(f"run.yaml:{line}: {key} ")
    assert hint in str(refusal.value)


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("    type: api\n", "run.yaml:2: services.m.type is missing; accepted: api"),
        ("    url: http://localhost:8000/v1\n", "run.yaml:2: services.m.url is missing"),
        (
            "    protocol: chat_completions\n",
            "run.yaml:2: services.m.protocol is missing; accepted: chat_completions, completions",
        ),
        ("    model: tiny\n", "run.yaml:2: services.m.model is missing"),
        ("      type: simple\n", "run.yaml:9: benchmarks[0].solver.type is missing; accepted: simple, custom"),
        ("      service: m\n", "run.yaml:9: benchmarks[0].solver.service is missing"),
        (SMALLEST[SMALLEST.index("benchmarks") :], "run.yaml: benchmarks is missing"),
    ],
)
def test_missing_key_is_named_with_what_it_accepts(load: Load, missing: str, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        load(SMALLEST.replace(missing, ""))
    assert str(refusal.value) == message


def test_a_wrong_type_is_reported_without_the_noise_of_its_other_keys(load: Load) -> None:
    text = SMALLEST.replace("type: api", "type: vllm\n    port: 8000\n    tensor_parallel_size: 8")
    with pytest.raises(UsageError) as refusal:
        load(text)
    assert str(refusal.value).startswith("run.yaml:3: services.m.type is 'vllm'")
    assert "\n" not in str(refusal.value)


def test_all_findings_are_reported_at_once(load: Load) -> None:
    text = SMALLEST.replace("    model: tiny\n", "").replace("name: gsm8k", "name: gsm8k\n    repeats: 0")
    with pytest.raises(UsageError) as refusal:
        load(text)
    assert [line.split(": ")[1].split()[0] for line in str(refusal.value).splitlines()] == [
        "services.m.model",
        "benchmarks[0].repeats",
    ]


@pytest.mark.parametrize("name", ["default", "none", '""'])
def test_reserved_service_names_are_refused(load: Load, name: str) -> None:
    with pytest.raises(UsageError, match="is a reserved name; call the service something else"):
        load(SMALLEST.replace("  m:\n", f"  {name}:\n").replace("service: m\n", f"service: {name}\n"))


def test_long_values_are_cut_in_errors(load: Load) -> None:
    text, _ = with_value(SMALLEST, BENCHMARK + "repeats", "x" * 500)
    with pytest.raises(UsageError) as refusal:
        load(text)
    assert len(str(refusal.value)) < 200


def test_one_stop_string_needs_no_list_and_an_empty_key_is_no_key(load: Load) -> None:
    config = load(SMALLEST, "services.m.generation.stop=END", "services.m.api_key=").config
    assert config.services["m"].generation == Generation(stop=["END"])
    assert config.services["m"].api_key is None


FULL = {
    "services": {"m": {"type": "api", "url": "http://h", "protocol": "completions", "model": "x", "proxy": {}}},
    "benchmarks": [
        {"name": "a", "solver": {"type": "simple", "service": "m", "generation": {"stop": ["x"]}}},
        {"name": "b", "solver": {"type": "custom", "class_path": "c:D"}, "problem_range": [0, 1]},
    ],
    "cluster": {"type": "local"},
    "output": {"dir": "x"},
}
PLACES = list(parse(yaml.safe_dump(FULL), "run.yaml").marks)
WORDS = st.sampled_from(["type", "simple", "custom", "api", "service", "generation", "zzz", ""])
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)


@given(st.lists(st.tuples(st.sampled_from(PLACES), JUNK), min_size=1, max_size=3))
def test_whatever_is_written_anywhere_is_accepted_or_refused_by_name(changes: list[tuple[KeyPath, Any]]) -> None:
    document = parse(yaml.safe_dump(FULL), "run.yaml")
    try:
        for path, junk in changes:
            document = apply_override(document, Override(path, junk))
        validate(prune_nulls(document))
    except UsageError as refusal:
        assert all(line.startswith(("-O ", "run.yaml")) for line in str(refusal).splitlines())
