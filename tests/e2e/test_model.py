"""The client and the whole command against a real model, which says what it likes: only the shape is certain."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nemo_evaluator.demo.server import CONTEXT, MODEL
from nemo_evaluator.errors import RequestError
from nemo_evaluator.models import ModelClient

pytestmark = pytest.mark.model


@pytest.fixture
async def client(model_url: str) -> AsyncIterator[ModelClient]:
    async with ModelClient(model_url, MODEL, max_tokens=8, temperature=1.0, seed=7) as client:
        yield client


async def test_the_model_is_listed_under_its_name(client: ModelClient) -> None:
    assert [model["id"] for model in await client.list_models()] == [MODEL]


async def test_a_chat_gives_text_with_its_usage(client: ModelClient) -> None:
    reply = await client.chat("Count: one, two, three,", "You count.")

    assert reply.content
    assert reply.model == MODEL
    assert reply.prompt_tokens
    assert reply.total_tokens == reply.prompt_tokens + (reply.completion_tokens or 0)


async def test_an_answer_ends_at_max_tokens(client: ModelClient) -> None:
    reply = await client.complete("Once upon a time there was")

    assert (reply.finish_reason, reply.completion_tokens) == ("length", 8)


async def test_an_answer_ends_before_a_stop_string(model_url: str) -> None:
    async with ModelClient(model_url, MODEL, max_tokens=64, temperature=0.0, stop=[" 8"]) as client:
        reply = await client.complete("1 2 3 4 5")

    assert reply.finish_reason == "stop"
    assert reply.content == " 6 7"


async def test_a_seed_repeats_its_answer_and_another_does_not(client: ModelClient) -> None:
    question = "My favourite thing is"
    answers = [(await client.complete(question, seed=seed)).content for seed in (7, 7, 8)]

    assert answers[0] == answers[1] != answers[2]


async def test_log_probabilities_of_the_answer_arrive(client: ModelClient) -> None:
    reply = await client.complete("1 2 3 4", logprobs=1)

    assert reply.raw_response["choices"][0]["logprobs"]["content"][0]["logprob"] <= 0


async def test_a_server_that_ignores_echo_is_found_out(client: ModelClient) -> None:
    with pytest.raises(RequestError, match="echo"):
        await client.complete("1 2 3 4", logprobs=1, echo=True)


async def test_a_prompt_beyond_the_context_is_named_as_that(client: ModelClient) -> None:
    with pytest.raises(RequestError) as caught:
        await client.complete("word " * (CONTEXT + 1))

    assert caught.value.kind == "context_length"


@pytest.mark.parametrize("protocol", ["completions", "chat_completions"])
def test_a_bundled_benchmark_runs_to_its_end(protocol: str, model_url: str, tmp_path: Path) -> None:
    config = tmp_path / "suite.yaml"
    config.write_text(
        f"""\
services:
  model: {{type: api, url: "{model_url}", protocol: {protocol}, model: {MODEL}}}
benchmarks:
  - name: tiny_arithmetic
    max_problems: 4
    solver: {{type: simple, service: model, generation: {{temperature: 0, max_tokens: 16, stop: ["\\n"]}}}}
"""
    )
    run = [sys.executable, "-m", "nemo_evaluator.cli.main", "eval", "run", str(config), "-o", str(tmp_path / "out")]

    done = subprocess.run(run, capture_output=True, text=True, timeout=240)

    assert done.returncode == 0, done.stderr
    [bundle] = (tmp_path / "out").rglob("eval-*.json")
    assert json.loads(bundle.read_text())["status"] == "completed"
    [rows] = (tmp_path / "out").rglob("results.jsonl")
    assert len(rows.read_text().splitlines()) == 4
