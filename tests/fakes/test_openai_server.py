"""The fake is part of every proof, so what it claims is proved too."""

import asyncio
import subprocess
import sys
import urllib.request

import orjson
import pytest

from tests.fakes.openai_server import Behaviour, FakeServer, When


def wire(path="/v1/chat/completions", **body):
    data = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], **body})
    return f"POST {path} HTTP/1.1\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data


async def replies_to(server, sent, count):
    """Bodies of `count` replies on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(sent)
    bodies = []
    for _ in range(count):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        bodies.append(orjson.loads(await reader.readexactly(length)))
    writer.close()
    await writer.wait_closed()
    return bodies


def text(body):
    return body["choices"][0]["message"]["content"]


async def test_requests_sent_ahead_are_answered_in_order():
    async with FakeServer(Behaviour(delay=0.05, when=When(numbers=[0])), mode="counter") as server:
        bodies = await replies_to(server, wire() * 5, 5)
    assert [text(body) for body in bodies] == ["0", "1", "2", "3", "4"]


async def test_a_request_in_pieces_is_one_request():
    async with FakeServer() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for byte in wire():
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()
    assert server.count == 1


async def test_an_answer_key_gives_each_prompt_its_answer():
    key = {"hi": "short", "hi there": "long"}
    async with FakeServer(mode="key", answer_key=key, answer="none") as server:
        prompts = ["oh hi there", "hi", "hello"]
        sent = b"".join(wire(messages=[{"role": "user", "content": prompt}]) for prompt in prompts)
        assert [text(body) for body in await replies_to(server, sent, 3)] == ["long", "short", "none"]


async def test_a_function_may_answer():
    async with FakeServer(answer=lambda request: f"you said {request.prompt}") as server:
        assert [text(body) for body in await replies_to(server, wire(), 1)] == ["you said hi"]


async def test_the_first_asks_of_each_prompt_can_fail():
    async with FakeServer(Behaviour(status=500, when=When(first_per_prompt=2))) as server:
        bodies = await replies_to(server, wire() * 3, 3)
    assert ["error" in body for body in bodies] == [True, True, False]


async def test_a_share_of_prompts_is_always_the_same_prompts():
    async with FakeServer(Behaviour(status=429, when=When(share_of_prompts=0.3))) as server:
        sent = b"".join(wire(messages=[{"role": "user", "content": str(n)}]) for n in range(100))
        first, second = await replies_to(server, sent, 100), await replies_to(server, sent, 100)
    failed = ["error" in body for body in first]
    assert failed == ["error" in body for body in second]
    assert 15 < sum(failed) < 45


def test_an_unknown_setting_is_refused():
    with pytest.raises(TypeError):
        FakeServer(anwser="x")


def test_the_process_is_controlled_and_tells_what_it_was_asked():
    command = [sys.executable, "-m", "tests.fakes.openai_server", "--port", "0", "--settings", '{"answer": "7"}']
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        root = process.stdout.readline().removeprefix("url: ").strip()
        before = ask(root + "/v1/chat/completions", {"messages": []})
        ask(root + "/__control", {"answer": "8"})
        after = ask(root + "/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]})
        log = ask(root + "/__log")
        process.terminate()
    assert [text(before), text(after), log["requests"]] == ["7", "8", 2]
    assert log["log"][1]["body"]["messages"][0]["content"] == "hi"


def ask(url, body=None):
    data = None if body is None else orjson.dumps(body)
    with urllib.request.urlopen(urllib.request.Request(url, data)) as reply:
        return orjson.loads(reply.read())
