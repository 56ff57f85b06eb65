"""What passes between a harness and its endpoint."""

import asyncio
import socket
import time
from urllib.parse import urlsplit

import aiohttp
import orjson
import pytest

from tests.fakes.openai_server import Behaviour, FakeServer, When
from tests.harness.proxy.worlds import KEY, harness


async def test_requests_and_replies_pass_unchanged(tmp_path):
    async with FakeServer(answer="plain") as server, harness(server, tmp_path) as client:
        said = await client.ask("Why?", temperature=0.5, stop=["\n"])
        sent = {"model": "m", "messages": [{"role": "user", "content": "Why?"}], "temperature": 0.5, "stop": ["\n"]}
        assert (said.content, server.bodies) == ("plain", [sent])


async def test_it_listens_on_loopback_only(tmp_path):
    async with FakeServer() as server, harness(server, tmp_path) as client:
        parts = urlsplit(client.proxy.url)
        assert (parts.hostname, parts.path) == ("127.0.0.1", "/v1/chat/completions")
        with socket.socket() as probe, pytest.raises(OSError):
            probe.connect(("127.0.0.2", parts.port))


@pytest.mark.parametrize("key", [None, "sk-somebody-else"])
async def test_who_does_not_bring_the_key_is_turned_away(tmp_path, key):
    async with FakeServer() as server, harness(server, tmp_path) as client:
        said = await client.ask(key=key)
        assert (said.status, server.count) == (401, 0)
        assert KEY not in said.text


async def test_the_endpoint_is_given_the_key(tmp_path):
    async with FakeServer(api_key=KEY) as server, harness(server, tmp_path) as client:
        assert (await client.ask()).status == 200


async def test_a_passing_fault_is_asked_again(tmp_path):
    fault = Behaviour(status=503, retry_after=0.01, when=When(first=1))
    async with FakeServer(fault) as server, harness(server, tmp_path, max_retries=2) as client:
        assert (await client.ask()).status == 200
        assert server.count == 2


async def test_a_refusal_is_passed_on_as_it_is_and_not_asked_again(tmp_path):
    async with FakeServer(Behaviour(status=400)) as server, harness(server, tmp_path, max_retries=3) as client:
        said = await client.ask()
        assert (said.status, "message" in said.json["error"], server.count) == (400, True, 1)


async def test_a_harness_is_told_how_long_to_wait(tmp_path):
    async with FakeServer(Behaviour(status=429, retry_after=7)) as server, harness(server, tmp_path) as client:
        said = await client.ask()
        assert (said.status, said.headers["Retry-After"]) == (429, "7")


async def test_an_endpoint_that_hangs_costs_one_timeout(tmp_path):
    async with FakeServer(Behaviour(hang="headers")) as server, harness(server, tmp_path, patience=0.2) as client:
        said = await client.ask()
        assert said.status == 504
        assert "no complete reply within 0.2 s" in said.json["error"]["message"]
        assert server.count == 1


async def test_ec01_a_request_s_clock_starts_when_it_is_sent_not_when_it_waits_for_its_turn(tmp_path):
    narrow = {"patience": 1.0, "parallelism": 4}
    async with FakeServer(Behaviour(delay=0.05)) as server, harness(server, tmp_path, **narrow) as client:
        said = await client.ask_all([f"question {n}" for n in range(120)])
    assert {each.status for each in said} == {200}
    assert (server.count, server.peak_in_flight) == (120, 4)


async def test_ec02_one_that_stalls_leaves_the_others_on_disk(tmp_path):
    stall = Behaviour(hang="body", when=When(prompt="stalls"))
    async with FakeServer(stall) as server, harness(server, tmp_path, patience=0.5, use_caching=True) as client:
        *_, last = await client.ask_all(["a", "b", "c", "stalls"])
    assert last.status == 504
    assert sum(len(path.read_bytes().splitlines()) for path in tmp_path.glob("cache/*.jsonl")) == 3


async def test_a_stall_is_asked_again_once(tmp_path):
    stall = Behaviour(hang="headers", when=When(first=1))
    async with FakeServer(stall) as server, harness(server, tmp_path, patience=0.3, max_retries=5) as client:
        assert (await client.ask()).status == 200
        assert server.count == 2


async def test_a_request_that_stalls_for_ever_ends_after_two_timeouts(tmp_path):
    stall, retries = Behaviour(hang="headers"), {"patience": 0.2, "max_retries": 50}
    async with FakeServer(stall) as server, harness(server, tmp_path, **retries) as client:
        assert (await client.ask()).status == 504
        assert server.count == 2


async def test_an_endpoint_that_is_gone_is_a_bad_gateway(tmp_path):
    async with FakeServer() as server, harness(server, tmp_path) as client:
        await server.stop()
        said = await client.ask()
        assert (said.status, "cannot connect" in said.json["error"]["message"]) == (502, True)
        await server.start()


async def test_a_stream_passes_piece_by_piece(tmp_path):
    pieces = [{"choices": [{"index": 0, "delta": {"content": word}}]} for word in ("one", "two")]
    text = "".join(f"data: {orjson.dumps(piece).decode()}\n\n" for piece in pieces) + "data: [DONE]\n\n"
    async with FakeServer(Behaviour(body=text)) as server, harness(server, tmp_path, use_caching=True) as client:
        said = await client.ask(stream=True)
        assert said.text == text
        await client.ask(stream=True)
        assert server.count == 2


async def test_a_stream_that_does_not_begin_is_asked_again(tmp_path):
    faults = Behaviour(status=503, retry_after=0.01, when=When(first=1)), Behaviour(body="data: [DONE]\n\n")
    async with FakeServer(*faults) as server, harness(server, tmp_path, max_retries=2) as client:
        said = await client.ask(stream=True)
        assert (said.status, server.count) == (200, 2)


async def test_a_stream_that_is_refused_says_why(tmp_path):
    async with FakeServer(Behaviour(status=400)) as server, harness(server, tmp_path, max_retries=2) as client:
        said = await client.ask(stream=True)
        assert (said.status, "message" in said.json["error"], server.count) == (400, True, 1)


async def test_what_is_no_json_passes_too(tmp_path):
    async with FakeServer() as server, harness(server, tmp_path, use_caching=True) as client:
        url = client.proxy.url.replace("/chat/completions", "/models")
        async with client.session.get(url, headers={"Authorization": f"Bearer {KEY}"}) as reply:
            assert (reply.status, "data" in await reply.json()) == (200, True)


async def test_a_request_may_hold_images(tmp_path):
    async with FakeServer() as server, harness(server, tmp_path) as client:
        assert (await client.ask("x" * 5_000_000)).status == 200


async def test_a_task_that_has_ended_does_not_wait_for_an_endpoint_that_hangs(tmp_path):
    async with FakeServer(Behaviour(hang="headers")) as server:
        began = time.monotonic()
        async with harness(server, tmp_path, patience=60) as client:
            asking = asyncio.create_task(client.ask())
            while not server.count:
                await asyncio.sleep(0.01)
        assert time.monotonic() - began < 60
        with pytest.raises(aiohttp.ClientError):
            await asking
