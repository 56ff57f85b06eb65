"""The loopback address that stands for an endpoint URL which is itself a secret."""

import asyncio
import json
import urllib.error
import urllib.request

from nemo_evaluator.direct.relay import Relay
from tests.fakes.openai_server import Behaviour, FakeServer
from tests.harness.direct.world import World

BODY = {"model": "fake-model", "prompt": "Hello"}


def post(url, headers=None):
    request = urllib.request.Request(
        url, json.dumps(BODY).encode(), {"Content-Type": "application/json", **(headers or {})}
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, dict(reply.headers), json.loads(reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), None


async def through(url, headers=None):
    with Relay(url) as relay:
        assert relay.url.startswith("http://127.0.0.1:") and "secret" not in relay.url
        return await asyncio.to_thread(post, relay.url, headers)


async def test_query_and_userinfo_are_added_to_what_passes():
    async with FakeServer(answer="Hi") as server:
        url = server.url.replace("//", "//me:secret@") + "/completions?code=secret"
        status, _, answer = await through(url)
    assert status == 200 and answer["choices"][0]["text"] == "Hi"
    assert server.log[0].path == "/v1/completions?code=secret" and server.bodies == [BODY]
    assert server.log[0].headers["authorization"] == "Basic bWU6c2VjcmV0"


async def test_a_token_wins_over_userinfo():
    async with FakeServer() as server:
        await through(
            server.url.replace("//", "//me:secret@") + "/completions", {"Authorization": "Bearer sk-not-a-key"}
        )
    assert server.log[0].headers["authorization"] == "Bearer sk-not-a-key"


async def test_a_refusal_comes_back_as_it_is():
    async with FakeServer(Behaviour(status=429, retry_after=3)) as server:
        status, headers, _ = await through(f"{server.url}/completions?code=secret")
    assert status == 429 and headers["Retry-After"] == "3"


async def test_an_endpoint_that_is_gone_is_a_gateway_error():
    status, _, _ = await through("http://127.0.0.1:9/v1/completions?code=secret")
    assert status == 502


async def test_only_who_knows_the_address_gets_through():
    async with FakeServer() as server:
        with Relay(f"{server.url}/completions?code=secret") as relay:
            port = relay.url.split(":")[2].partition("/")[0]
            status, _, _ = await asyncio.to_thread(post, f"http://127.0.0.1:{port}/v1/completions")
    assert status == 404 and server.count == 0


async def test_a_run_with_a_secret_url_leaves_it_nowhere(tmp_path):
    world = World(tmp_path)
    async with FakeServer(answer="Hi", model="fake-model") as server:
        secret = {"EVAL_ENDPOINT_URL": f"{server.url}/completions?code=not-a-real-secret"}
        model = {"endpoint_url": None, "endpoint_url_variable": "EVAL_ENDPOINT_URL"}
        steps = {"behaviour": {"gsm8k": [{"request": "Hello"}]}, "environ": secret, "model": model}
        done = await asyncio.to_thread(lambda: world.run(preflight=True, **steps))
    assert done.code == 0, done.err
    assert "answer: Hi" in world.log()
    assert all(request.path.endswith("?code=not-a-real-secret") for request in server.log)
    assert b"not-a-real-secret" not in world.everything_written()
    assert world.read("run_manifest.json")["model"]["endpoint_url"] == f"{server.url}/completions?***"
    assert "EVAL_ENDPOINT_URL" not in world.calls()[0]["environment"]
