"""CF-02: every key of the YAML changes what a run does. Each test changes one key and looks at what the server saw."""

import asyncio
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from nemo_evaluator import suite
from nemo_evaluator.config.load import load_config
from nemo_evaluator.config.model import ApiService, Benchmark, Generation, Proxy
from nemo_evaluator.engine.progress import ProgressTracker
from nemo_evaluator.errors import UsageError
from tests.fakes.openai_server import Behaviour, FakeServer, When


def config(url, service=None, benchmark=None, solver=None):
    return {
        "services": {
            "model": {"type": "api", "url": url, "protocol": "chat_completions", "model": "m"} | (service or {})
        },
        "benchmarks": [
            {
                "name": "tiny_arithmetic",
                "max_problems": 4,
                "solver": {"type": "simple", "service": "model"} | (solver or {}),
            }
            | (benchmark or {})
        ],
    }


async def run(folder, document):
    path = folder / "suite.yaml"
    path.write_text(yaml.safe_dump(document))
    entries = await suite.prepare(load_config(path, environ={}).config, folder / "out")
    trackers = {entry.label: ProgressTracker() for entry in entries}
    return await suite.run(entries, "refuse", trackers, asyncio.Event(), lambda outcome: None)


@pytest.fixture
async def ask(tmp_path):
    """Run one benchmark with some keys set; what the server saw and what came of it."""

    async def ask(*behaviours, service=None, benchmark=None, solver=None, **server_settings):
        async with FakeServer(*behaviours, **{"answer": "Answer: 42"} | server_settings) as server:
            (outcome,) = await run(tmp_path, config(server.url, service, benchmark, solver))
        return SimpleNamespace(server=server, bodies=server.bodies, bundle=outcome.bundle)

    return ask


GENERATION = {
    "temperature": 0.7,
    "top_p": 0.9,
    "max_tokens": 11,
    "seed": 5,
    "stop": ["\n\n"],
    "frequency_penalty": 0.5,
    "presence_penalty": -0.5,
}


@pytest.mark.parametrize("key", GENERATION)
@pytest.mark.parametrize("where", ["service", "solver"])
async def test_generation_is_sent(ask, key, where):
    seen = await ask(**{where: {"generation": {key: GENERATION[key]}}})
    assert {str(body[key]) for body in seen.bodies} == {str(GENERATION[key])}


async def test_the_model_is_sent(ask):
    assert (await ask(service={"model": "other"})).bodies[0]["model"] == "other"


async def test_the_protocol_chooses_the_path(ask):
    assert {request.path for request in (await ask(service={"protocol": "completions"})).server.log} == {
        "/v1/completions"
    }


@pytest.mark.parametrize(("kind", "protocol", "is_refused"), [
    ("completions", "chat_completions", True),
    ("completions", "completions", False),
    ("chat", "chat_completions", False),
    ("chat", "completions", False),
])  # fmt: skip
async def test_a_benchmark_for_completions_is_never_asked_through_a_chat_template(
    ask, tmp_path, kind, protocol, is_refused
):
    """EC-24: an obscure failure, or another number than the one that was meant; now refused before any request."""
    (tmp_path / "base.py").write_text(
        "from nemo_evaluator.environments import benchmark, scorer\n"
        f"@benchmark('{kind}_{protocol}', lambda: [{{'target': '2'}}], 'What is it?', endpoint_type={kind!r})\n"
        "@scorer\ndef base(sample): return True\n"
    )
    asking = ask(service={"protocol": protocol}, benchmark={"name": str(tmp_path / "base.py"), "max_problems": None})
    if not is_refused:
        assert (await asking).bundle["n_results"] == 1
        return
    with pytest.raises(
        UsageError, match=r"_completions' is written for completions, and service 'model' speaks chat_comp"
    ):
        await asking


async def test_the_api_key_is_the_bearer(ask):
    seen = await ask(service={"api_key": "sk-not-a-real-key"})
    assert seen.server.log[0].headers["authorization"] == "Bearer sk-not-a-real-key"


async def test_without_an_api_key_none_is_sent(ask, monkeypatch):
    monkeypatch.setenv("NEMO_API_KEY", "sk-not-for-this-one")
    assert "authorization" not in (await ask()).server.log[0].headers


async def test_max_output_tokens_bounds_max_tokens(ask):
    assert (await ask(service={"max_output_tokens": 7})).bodies[0]["max_tokens"] == 7


async def test_extra_body_and_headers_are_sent(ask):
    seen = await ask(service={"proxy": {"extra_body": {"top_k": 3}, "extra_headers": {"X-Team": "eval"}}})
    assert seen.bodies[0]["top_k"] == 3 and seen.server.log[0].headers["x-team"] == "eval"


async def test_request_timeout_ends_an_attempt(ask):
    seen = await ask(
        Behaviour(hang="headers", when=When(numbers=[0])),
        service={"proxy": {"request_timeout": 0.3, "max_retries": 0}},
        benchmark={"max_concurrent": 1},
    )
    assert seen.bundle["benchmark"]["states"] == {"error:timeout": 1, "scored": 3}


@pytest.mark.parametrize("retries", [0, 1])
async def test_max_retries_is_how_often_it_is_asked_again(ask, retries):
    seen = await ask(Behaviour(status=500), service={"proxy": {"max_retries": retries}}, benchmark={"max_problems": 1})
    assert seen.server.count == retries + 1


async def test_timeout_bounds_all_attempts_of_a_sample(ask):
    seen = await ask(Behaviour(status=500), benchmark={"timeout": 0.1, "max_problems": 1})
    assert seen.server.count == 1


async def test_max_concurrent_upstream_bounds_the_endpoint(ask):
    seen = await ask(Behaviour(delay=0.02), service={"proxy": {"max_concurrent_upstream": 2}})
    assert seen.server.peak_in_flight == 2


async def test_max_concurrent_bounds_the_benchmark(ask):
    assert (await ask(Behaviour(delay=0.02), benchmark={"max_concurrent": 3})).server.peak_in_flight == 3


async def test_a_reasoning_pattern_is_cut_from_answers(ask):
    seen = await ask(service={"reasoning_pattern": r"\[think\].*?\[/think\]"}, answer="[think]7[/think]Answer: 42")
    assert seen.bundle["results"][0]["model_response"] == "Answer: 42"


async def test_a_system_prompt_is_sent_and_recorded(ask):
    seen = await ask(solver={"system_prompt": "Be brief."})
    assert seen.bodies[0]["messages"][0] == {"role": "system", "content": "Be brief."}
    assert seen.bundle["trajectories"][0]["system_prompt"] == "Be brief."


async def test_repeats_ask_each_problem_so_often(ask):
    assert set((await ask(benchmark={"repeats": 3})).server.asks().values()) == {3}


async def test_max_problems_is_a_limit(ask):
    assert (await ask(benchmark={"max_problems": 2})).server.count == 2


async def test_problem_range_is_a_slice(ask):
    seen = await ask(benchmark={"max_problems": None, "problem_range": [10, 12]})
    assert [row["problem_idx"] for row in seen.bundle["results"]] == [10, 11]


async def test_shuffle_seed_draws_other_problems(ask):
    seen = await ask(benchmark={"shuffle_seed": 3})
    assert [row["problem_idx"] for row in seen.bundle["results"]] != [0, 1, 2, 3]


@pytest.mark.parametrize(("rate", "status"), [(0.5, "completed"), (0.1, "failed")])
async def test_max_error_rate_decides_the_status(ask, rate, status):
    seen = await ask(Behaviour(status=400, when=When(numbers=[0])), benchmark={"max_error_rate": rate})
    assert seen.bundle["status"] == status


async def test_params_make_the_environment(tmp_path):
    async with FakeServer() as server:
        document = config(server.url, benchmark={"params": {"nonsense": 1}})
        with pytest.raises(UsageError, match="nonsense"):
            await run(tmp_path, document)


async def test_services_at_one_address_share_one_limit(tmp_path):
    """One adaptive limiter an endpoint: two benchmarks with eight workers each are never more than eight requests."""
    async with FakeServer(Behaviour(delay=0.03), answer="Answer: 42") as server:
        document = config(server.url, benchmark={"max_problems": 20, "max_concurrent": 8})
        document["services"]["twin"] = document["services"]["model"] | {"url": server.url + "/chat/completions"}
        document["benchmarks"].append(
            document["benchmarks"][0] | {"solver": {"type": "simple", "service": "twin"}, "name": "tiny_choice"}
        )
        outcomes = await run(tmp_path, document)
    assert server.peak_in_flight == 8 and server.count == 40
    assert [outcome.entry.label for outcome in outcomes] == ["tiny_arithmetic", "tiny_choice"]


async def test_what_an_endpoint_refuses_is_learned_once_for_the_suite(tmp_path):
    """EC-13."""
    async with FakeServer(refuses=("max_tokens",), answer="Answer: 42") as server:
        document = config(server.url, {"generation": {"max_tokens": 9}}, {"max_problems": 20})
        document["benchmarks"].append(document["benchmarks"][0] | {"name": "tiny_choice"})
        await run(tmp_path, document)
    assert server.count == 41 and sum("max_completion_tokens" in body for body in server.bodies) == 40


async def test_one_benchmark_that_fails_does_not_end_the_others(tmp_path):
    async with FakeServer(Behaviour(status=404, when=When(prompt="letter of the right choice"))) as server:
        document = config(server.url, benchmark={"max_problems": 20})
        document["benchmarks"].append(document["benchmarks"][0] | {"name": "tiny_choice"})
        arithmetic, choice = await run(tmp_path, document)
    assert (arithmetic.bundle["status"], choice.bundle["status"]) == ("completed", "failed")


def test_folder_names_are_unlike_and_safe():
    names = suite.folder_names(["gsm8k", "gsm8k", "a/b:c", "gsm8k_2"])
    assert names == ["gsm8k", "gsm8k_2", "a_b_c", "gsm8k_2_2"]


@pytest.mark.parametrize(
    ("class_path", "named"),
    [
        ("nothing", "names no class"),
        ("no.such.module:Class", "no.such"),
        ("nemo_evaluator.solvers:Missing", "Missing"),
        ("missing.py:Class", "missing.py"),
        ("nemo_evaluator.solvers:ChatSolver", "with its config fails: TypeError"),
    ],
)
async def test_a_custom_solver_that_cannot_be_made_is_named(tmp_path, class_path, named):
    solver = {"type": "custom", "class_path": class_path, "config": {"nonsense": 1}}
    async with FakeServer() as server:
        with pytest.raises(UsageError) as refused:
            await run(tmp_path, config(server.url, solver=solver))
    assert named in str(refused.value) and class_path in str(refused.value)


def test_every_key_of_a_benchmark_is_tried_here():
    source = Path(__file__).read_text()
    keys = Counter(key for model in (ApiService, Benchmark, Generation, Proxy) for key in model.model_fields)
    tried_elsewhere = {"type", "url", "name", "solver", "ca_bundle", "generation", "proxy"}
    assert not [key for key in keys if key not in tried_elsewhere and f'"{key}"' not in source]


async def test_what_fails_to_close_costs_no_file(tmp_path, caplog):
    (tmp_path / "closing.py").write_text(
        "from nemo_evaluator.environments import *\nfrom nemo_evaluator.solvers import *\n"
        "class Stuck(Solver):\n"
        "    async def solve(self, task): return SolveResult('a')\n"
        "    async def close(self): raise KeyError('boom')\n"
        "@register('closing')\nclass Closing(EvalEnvironment):\n"
        "    def __len__(self): return 2\n"
        "    async def seed(self, idx): return SeedResult('q', 'a')\n"
        "    async def verify(self, response, expected, **metadata): return VerifyResult(1.0)\n"
        "    async def close(self): raise KeyError('boom')\n"
    )
    solver = {"type": "custom", "service": None, "class_path": f"{tmp_path}/closing.py:Stuck"}
    asked = config("http://127.0.0.1:1", benchmark={"name": str(tmp_path / "closing.py"), "max_problems": None})
    asked["benchmarks"][0]["solver"] = {key: value for key, value in solver.items() if value}
    (outcome,) = await run(tmp_path, asked)
    assert outcome.bundle["status"] == "completed" and outcome.path.exists()
    for what in ("solver", "benchmark"):
        assert f"Closing the {what} fails: KeyError: 'boom'" in caplog.text
