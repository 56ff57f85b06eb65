import asyncio
import inspect
import socket

import pytest

from nemo_evaluator.errors import RequestError, UsageError
from nemo_evaluator.models import ModelClient, Timeouts
from tests.fakes.openai_server import FakeServer


async def test_a_question_gets_its_answer(client_of):
    async with FakeServer(answer="4") as server, client_of(server) as client:
        response = await client.chat("What is 2+2?", system="Answer briefly.")
    assert (response.content, response.finish_reason, response.model) == ("4", "stop", "fake-model")
    assert (response.request_prompt, response.request_system) == ("What is 2+2?", "Answer briefly.")
    assert response.latency_ms > 0
    assert response.raw_response["object"] == "chat.completion"


def test_parameters_and_defaults_are_those_of_the_seed():
    parameters = list(inspect.signature(ModelClient).parameters.values())
    positional = {p.name: p.default for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}
    assert positional == {
        "base_url": "https://inference-api.nvidia.com/v1",
        "model": "azure/openai/gpt-5.2",
        "api_key": None,
        "temperature": None,
        "max_tokens": None,
        "top_p": None,
        "seed": None,
        "stop": None,
        "frequency_penalty": None,
        "presence_penalty": None,
        "timeout": 120.0,
        "max_concurrent": 8,
    }


async def test_what_is_sent_is_what_payload_shows(client_of):
    async with (
        FakeServer() as server,
        client_of(server, temperature=0.5, stop=["END"], extra_body={"top_k": 3}) as client,
    ):
        await client.chat("hi", "be brief", seed=7)
        await client.complete("hi", "be brief")
        shown = [client.payload("chat", "hi", "be brief", seed=7), client.payload("completions", "hi", "be brief")]
    assert server.bodies == shown
    assert shown[0] | {"temperature": 0.5, "stop": ["END"], "top_k": 3, "seed": 7} == shown[0]
    assert shown[1]["prompt"] == "be brief\n\nhi"


async def test_the_seed_of_a_call_wins(client_of):
    async with FakeServer() as server, client_of(server, seed=1) as client:
        for seed in (None, 0, 5):
            await client.chat("hi", seed=seed)
    assert [body["seed"] for body in server.bodies] == [1, 0, 5]


async def test_system_prompt_reaches_the_model_beside_messages(client_of):
    async with FakeServer() as server, client_of(server) as client:
        response = await client.chat(system="be brief", messages=[{"role": "user", "content": "hi"}])
    assert server.bodies[0]["messages"][0] == {"role": "system", "content": "be brief"}
    assert (response.request_prompt, response.request_system) == ("hi", "be brief")


@pytest.mark.parametrize(
    ("key", "environ", "header"),
    [
        ("sk-given", {"NEMO_API_KEY": "sk-nemo"}, "Bearer sk-given"),
        (None, {"NEMO_API_KEY": "sk-nemo", "NVIDIA_API_KEY": "sk-nvidia"}, "Bearer sk-nemo"),
        (None, {"NVIDIA_API_KEY": "sk-nvidia"}, "Bearer sk-nvidia"),
        (None, {}, None),
    ],
)
async def test_the_key_comes_from_the_caller_or_the_environment(client_of, key, environ, header):
    async with FakeServer() as server, client_of(server, api_key=key, environ=environ) as client:
        await client.chat("hi")
    assert server.log[0].headers.get("authorization") == header


async def test_user_and_password_of_the_url_are_sent_but_never_shown(client_of):
    async with FakeServer() as server, client_of(server.url.replace("//", "//user:not-a-password@")) as client:
        await client.chat("hi")
        shown = f"{client!r} {client.base_url} {client.url('chat')}"
    assert server.log[0].headers["authorization"].startswith("Basic ")
    assert "not-a-password" not in shown


async def test_the_key_is_in_no_message_and_no_repr(client_of):
    key = "a-key-that-is-not-real"
    async with FakeServer(api_key="another") as server, client_of(server, api_key=key) as client:
        server.control(answer="x", behaviours=[{"status": 401, "body": f"Wrong key: Bearer {key}, {key}"}])
        with pytest.raises(RequestError) as caught:
            await client.chat("hi")
    assert caught.value.kind == "auth"
    assert key not in f"{caught.value} {client!r} {client.stats()} {client.generation}"


def test_a_key_that_no_header_can_carry_is_refused_without_showing_it():
    with pytest.raises(UsageError) as caught:
        ModelClient(api_key="sk-not\na-real-key")
    assert "sk-not" not in str(caught.value)


async def test_extra_headers_are_sent_and_kept_secret(client_of):
    headers = {"api-key": "azure-not-real"}
    async with FakeServer() as server, client_of(server, extra_headers=headers) as client:
        server.control(behaviours=[{"status": 400, "body": "bad header azure-not-real"}])
        with pytest.raises(RequestError) as caught:
            await client.chat("hi")
    assert server.log[0].headers["api-key"] == "azure-not-real"
    assert "azure-not-real" not in str(caught.value)


@pytest.mark.parametrize(
    "parameters",
    [{"max_concurrent": 0}, {"timeout": 0}, {"base_url": "nowhere"}, {"reasoning_pattern": "("}],
)
def test_bad_parameters_are_refused_before_anything_is_sent(parameters):
    with pytest.raises(UsageError) as caught:
        ModelClient(**parameters)
    assert "\n" not in str(caught.value)


def test_the_total_limit_is_the_timeout_unless_it_is_given():
    assert ModelClient(timeout=5).timeouts.total == 5
    assert ModelClient(timeout=5, timeouts=Timeouts(total=9)).timeouts.total == 9


async def test_models_are_listed(client_of):
    async with FakeServer(model="a", models=("b",), max_model_len=4096) as server, client_of(server) as client:
        models = await client.list_models()
    assert [(model["id"], model["max_model_len"]) for model in models] == [("a", 4096), ("b", 4096)]


async def test_two_clients_share_one_limiter(client_of):
    async with FakeServer() as server, client_of(server, max_concurrent=3) as first:
        server.control(behaviours=[{"delay": 0.01}])
        async with client_of(server, limiter=first.limiter) as second:
            await asyncio.gather(*(client.chat("hi") for client in (first, second) for _ in range(10)))
    assert server.peak_in_flight == 3


def test_a_client_outlives_its_event_loop(client_of):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = client_of(f"http://127.0.0.1:{port}")

    async def ask():
        server = await FakeServer(answer="4").start(port)
        answer = (await client.chat("hi")).content
        await client.close()
        await server.stop()
        return answer

    assert [asyncio.run(ask()), asyncio.run(ask())] == ["4", "4"]


async def test_text_that_is_not_valid_unicode_is_sent_escaped(client_of):
    async with FakeServer() as server, client_of(server) as client:
        await client.chat("half an emoji: \ud83d")
    assert b"\\ud83d" in server.log[0].body


async def test_stats_tell_what_happened(client_of):
    async with FakeServer() as server, client_of(server) as client:
        server.control(
            behaviours=[{"status": 500, "when": {"numbers": [0]}}, {"status": 400, "when": {"numbers": [2]}}]
        )
        assert (await client.chat("a")).retries == 1
        with pytest.raises(RequestError):
            await client.chat("b")
        stats = client.stats()
    assert (stats["requests"], stats["retries"], stats["errors"]) == (3, 1, {"server": 1})
    assert stats["limiter"]["in_flight"] == 0


async def test_a_cancelled_request_gives_its_slot_back(client_of):
    async with FakeServer() as server, client_of(server, max_concurrent=1) as client:
        server.control(behaviours=[{"hang": "headers", "when": {"first": 1}}])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.chat("a"), 0.05)
        assert (await client.chat("b")).content == "The answer is 42."
