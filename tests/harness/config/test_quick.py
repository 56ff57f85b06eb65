from typing import Any

import pytest

from nemo_evaluator.config.load import load_config
from nemo_evaluator.config.model import EvalConfig
from nemo_evaluator.config.quick import Flags
from nemo_evaluator.errors import UsageError
from tests.harness.config.conftest import SMALLEST, Load

QUICK = Flags(bench="gsm8k", model_url="http://localhost:8000/v1", model_id="tiny")
TWO = SMALLEST.replace(
    "benchmarks:", "  other: {type: api, url: 'http://h', protocol: completions, model: o}\nbenchmarks:"
)
SECOND = "  - name: mmlu\n    repeats: 9\n    solver: {type: simple, service: m, generation: {temperature: 1}}\n"
CUSTOM = "  - name: mine\n    solver: {type: custom, class_path: 'mine:Solver'}\n"


def quick(environ: dict[str, str] | None = None, **flags: Any) -> EvalConfig:
    given = {"bench": "gsm8k", "model_url": "http://localhost:8000/v1", "model_id": "tiny"} | flags
    return load_config(None, flags=Flags(**given), environ=environ or {}).config


def test_flags_alone_make_the_config_that_yaml_would(load: Load) -> None:
    assert quick() == load(SMALLEST.replace("  m:", "  model:").replace("service: m\n", "service: model\n")).config


def test_every_flag_has_its_place() -> None:
    config = quick(
        repeats=3,
        max_problems=5,
        max_error_rate=0.2,
        api_key="sk-not-a-real-key",
        system_prompt="Be brief: ${x}",
        temperature=0.0,
        max_tokens=10,
        output_dir="out",
    )
    benchmark, service = config.benchmarks[0], config.services["model"]
    assert (benchmark.repeats, benchmark.max_problems, benchmark.max_error_rate) == (3, 5, 0.2)
    assert benchmark.solver.system_prompt == "Be brief: ${x}"
    assert service.api_key.get_secret_value() == "sk-not-a-real-key"
    assert (service.generation.temperature, service.generation.max_tokens) == (0.0, 10)
    assert config.output.dir == "out"


@pytest.mark.parametrize(
    ("url", "protocol"),
    [
        ("http://h/v1", "chat_completions"),
        ("http://h/v1/chat/completions/", "chat_completions"),
        ("http://h/v1/completions", "completions"),
        ("http://h/v1/completions?api-version=2", "completions"),
    ],
)
def test_protocol_follows_from_the_url(url: str, protocol: str) -> None:
    assert quick(model_url=url).services["model"].protocol == protocol


def test_endpoint_may_come_from_the_environment_and_its_key_stays_a_name() -> None:
    environ = {"NEMO_MODEL_URL": "http://e/v1", "NEMO_MODEL_ID": "em", "NVIDIA_API_KEY": "sk-not-a-real-key"}
    loaded = load_config(None, flags=Flags(bench="gsm8k"), environ=environ)
    service = loaded.config.services["model"]
    assert (service.url, service.model) == ("http://e/v1", "em")
    assert service.api_key.get_secret_value() == "sk-not-a-real-key"
    assert loaded.composed["services"]["model"]["api_key"] == "${NVIDIA_API_KEY}"


def test_a_flag_wins_over_the_environment_and_nemo_over_nvidia() -> None:
    environ = {"NEMO_MODEL_ID": "em", "NEMO_API_KEY": "sk-not-real-1", "NVIDIA_API_KEY": "sk-not-real-2"}
    service = quick(environ).services["model"]
    assert (service.model, service.api_key.get_secret_value()) == ("tiny", "sk-not-real-1")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (Flags(), "nothing to run: give a config file, or --bench NAME with --model-url and --model-id"),
        (Flags(bench="a"), "--bench without a config needs --model-url (or NEMO_MODEL_URL in the environment)"),
        (Flags(bench="a", model_url="http://h"), "--bench without a config needs --model-id"),
        (
            Flags(bench="a", model_url="h", model_id="m"),
            "--model-url: services.model.url is 'h', which is no web address",
        ),
        (
            Flags(bench="a", model_url="http://h/responses", model_id="m"),
            "--model-url: services.model.protocol is 'responses', which is not",
        ),
        (Flags("a", model_url="http://h", model_id="m", repeats=0), "--repeats: benchmarks[0].repeats is 0; it must"),
        (Flags("a", model_url="http://h", model_id="m", temperature=3), "--temperature: services.model.generation."),
    ],
)
def test_flags_that_make_no_config_are_refused_in_one_line(flags: Flags, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        load_config(None, flags=flags, environ={})
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)


def test_overrides_work_on_flags_too() -> None:
    loaded = load_config(None, flags=QUICK, overrides=["services.model.proxy.max_retries=2"], environ={})
    assert loaded.config.services["model"].proxy.max_retries == 2


def test_benchmark_flags_apply_to_every_benchmark_of_a_config(load: Load) -> None:
    config = load(SMALLEST + SECOND, flags=Flags(repeats=2, max_problems=7, max_error_rate=1, system_prompt="S")).config
    assert [(each.repeats, each.max_problems, each.max_error_rate) for each in config.benchmarks] == [(2, 7, 1.0)] * 2
    assert [each.solver.system_prompt for each in config.benchmarks] == ["S", "S"]


def test_service_flags_apply_to_the_one_service_of_a_config(load: Load) -> None:
    flags = Flags(model_url="https://new/v1", model_id="new", api_key="sk-not-a-real-key")
    service = load(SMALLEST, flags=flags).config.services["m"]
    assert (service.url, service.model, service.api_key.get_secret_value()) == (flags.model_url, "new", flags.api_key)


def test_generation_flags_win_over_service_and_solver(load: Load) -> None:
    config = load(SMALLEST + SECOND, flags=Flags(temperature=0.0, max_tokens=3)).config
    assert config.services["m"].generation.temperature == 0.0
    assert config.services["m"].generation.max_tokens == 3
    assert config.benchmarks[1].solver.generation.temperature == 0.0


def test_output_flag_applies_to_a_config(load: Load) -> None:
    assert load(SMALLEST, flags=Flags(output_dir="there")).config.output.dir == "there"


def test_override_has_the_last_word_over_a_flag(load: Load) -> None:
    assert load(SMALLEST, "benchmarks[0].repeats=5", flags=Flags(repeats=2)).config.benchmarks[0].repeats == 5


def test_bench_selects_among_the_benchmarks_of_a_config(load: Load) -> None:
    loaded = load(SMALLEST + SECOND, "benchmarks[1].max_problems=3", flags=Flags(bench="mmlu"))
    assert [(each.name, each.max_problems) for each in loaded.config.benchmarks] == [("mmlu", 3)]
    assert [each["name"] for each in loaded.composed["benchmarks"]] == ["mmlu"]


def test_bench_selects_both_when_a_name_is_listed_twice(load: Load) -> None:
    assert len(load(SMALLEST + SECOND + SECOND, flags=Flags(bench="mmlu")).config.benchmarks) == 2


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        (SMALLEST + SECOND, Flags(bench="mmul"), "--bench 'mmul' is not in the config (did you mean 'mmlu'?); it has:"),
        (
            TWO,
            Flags(model_url="http://x"),
            "--model-url applies to a config with one service; this one has 2 (m, other);",
        ),
        (
            TWO,
            Flags(model_id="x"),
            "--model-id applies to a config with one service; this one has 2 (m, other); use -O",
        ),
        (TWO, Flags(api_key="sk-not-a-real-key"), "--api-key applies to a config with one service; this one has 2"),
        (
            SMALLEST + CUSTOM,
            Flags(system_prompt="x"),
            "--system-prompt cannot reach benchmarks[1].solver, which is custom",
        ),
        (
            SMALLEST + CUSTOM,
            Flags(temperature=1),
            "--temperature cannot reach benchmarks[1].solver, which uses no service",
        ),
        (SMALLEST, Flags(max_tokens=0), "--max-tokens: services.m.generation.max_tokens is 0; it must be at least 1"),
        (
            SMALLEST,
            Flags(max_error_rate=2),
            "--max-error-rate: benchmarks[0].max_error_rate is 2; it must be at most 1",
        ),
        (SMALLEST, Flags(model_url="http://h/v1/completions"), "--model-url: services.m.url ends like protocol"),
    ],
)
def test_a_flag_that_cannot_apply_is_refused_in_one_line(load: Load, text: str, flags: Flags, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        load(text, flags=flags)
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("text", ["benchmarks: 3\nservices: 4\n", "benchmarks: [3]\nservices: {m: 4}\n"])
def test_flags_leave_a_malformed_config_to_be_refused_with_its_line(load: Load, text: str) -> None:
    with pytest.raises(UsageError, match=r"run\.yaml:1: benchmarks"):
        load(text, flags=Flags(output_dir="x", system_prompt=None))
