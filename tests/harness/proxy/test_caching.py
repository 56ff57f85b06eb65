"""An answered request is never asked again."""

import asyncio
import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from nemo_evaluator.proxy.exchange import Request
from nemo_evaluator.proxy.interceptors.caching import key_of
from nemo_evaluator.proxy.store import AnswerStore
from tests.fakes.openai_server import Behaviour, FakeServer, When
from tests.harness.proxy.worlds import harness


async def test_a_second_ask_is_answered_from_the_cache_byte_for_byte(tmp_path):
    async with FakeServer(mode="counter") as server, harness(server, tmp_path, use_caching=True) as client:
        first, second = await client.ask(), await client.ask()
        assert (second.status, second.text) == (first.status, first.text)
        assert server.count == 1


async def test_a_resumed_task_asks_nothing_again(tmp_path):
    prompts = [f"question {n}" for n in range(50)]
    async with FakeServer(mode="counter") as server:
        async with harness(server, tmp_path, use_caching=True) as client:
            first = await client.ask_all(prompts)
        async with harness(server, tmp_path, use_caching=True) as client:
            second = await client.ask_all(prompts)
        assert [said.text for said in second] == [said.text for said in first]
        assert server.count == 50


async def test_an_answer_under_way_when_the_task_is_stopped_is_kept_for_the_next(tmp_path):
    async with FakeServer(Behaviour(delay=2)) as server:
        async with harness(server, tmp_path, use_caching=True) as client:
            asking = asyncio.create_task(client.ask())
            while not server.count:
                await asyncio.sleep(0.01)
            asking.cancel()
        async with harness(server, tmp_path, use_caching=True) as client:
            assert (await client.ask()).status == 200
        assert server.count == 1


async def test_requests_that_are_alike_and_in_flight_together_become_one(tmp_path):
    async with FakeServer(Behaviour(delay=0.1)) as server, harness(server, tmp_path, use_caching=True) as client:
        said = await client.ask_all(["the same"] * 20)
        assert {reply.status for reply in said} == {200}
        assert server.count == 1


DIFFERENT = [
    {"model": "other"},
    {"prompt": "Who?"},
    {"temperature": 0.5},
    {"max_tokens": 7},
    {"stop": ["\n"]},
    {"seed": 1},
    {"n": 2},
    {"logprobs": True},
    {"response_format": {"type": "json_object"}},
    {"chat_template_kwargs": {"enable_thinking": True}},
]


@pytest.mark.parametrize("difference", DIFFERENT, ids=lambda item: next(iter(item)))
async def test_whatever_decides_the_answer_is_part_of_the_key(tmp_path, difference):
    async with FakeServer() as server, harness(server, tmp_path, use_caching=True) as client:
        await client.ask()
        await client.ask(**difference)
        assert server.count == 2


async def test_the_path_is_part_of_the_key_and_the_host_is_not(tmp_path):
    async with FakeServer() as one, FakeServer() as two:
        async with harness(one, tmp_path, use_caching=True) as client:
            await client.ask()
            await client.ask(url=client.proxy.url.replace("/chat/completions", "/completions"))
        async with harness(two, tmp_path, use_caching=True) as client:
            await client.ask()
        assert (one.count, two.count) == (2, 0)


def test_the_order_of_parameters_makes_no_difference():
    one = Request.read("POST", "/v1/completions", b'{"model":"m","prompt":"p","stop":["a","b"]}')
    two = Request.read("POST", "/v1/completions", b'{"stop": ["a", "b"], "prompt": "p", "model": "m"}')
    assert key_of(one) == key_of(two)


@pytest.mark.parametrize(
    "fault",
    [
        Behaviour(status=500),
        Behaviour(status=400),
        Behaviour(reply="truncated"),
        Behaviour(reply="empty"),
        Behaviour(reply="html"),
        Behaviour(reply="no_choices"),
        Behaviour(body={"error": {"message": "overloaded"}}),
        Behaviour(drop="body"),
    ],
    ids=["server error", "refusal", "truncated", "empty", "web page", "no choices", "error in 200", "broken off"],
)
async def test_errors_and_truncated_replies_are_never_kept(tmp_path, fault):
    once = Behaviour(**{**{name: getattr(fault, name) for name in fault.__slots__}, "when": When(first=1)})
    async with FakeServer(once) as server, harness(server, tmp_path, use_caching=True) as client:
        await client.ask()
        assert (await client.ask()).content == "The answer is 42."
        assert server.count == 2


async def test_an_answer_that_ended_before_its_limit_is_not_kept(tmp_path):
    short = {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "The"}, "finish_reason": "length"}],
        "usage": {"completion_tokens": 1},
    }
    async with FakeServer(Behaviour(body=short)) as server, harness(server, tmp_path, use_caching=True) as client:
        await client.ask_all(["a"], max_tokens=100)
        await client.ask_all(["a"], max_tokens=100)
        assert server.count == 2
        await client.ask_all(["a"], max_tokens=1)
        await client.ask_all(["a"], max_tokens=1)
        assert server.count == 3


async def test_lines_that_a_crash_has_torn_are_passed_over(tmp_path):
    async with FakeServer() as server:
        async with harness(server, tmp_path, use_caching=True) as client:
            await client.ask_all(["a", "b", "c"])
        (path,) = (tmp_path / "cache").glob("*.jsonl")
        path.write_bytes(path.read_bytes()[:-20])
        async with harness(server, tmp_path, use_caching=True) as client:
            assert {said.content for said in await client.ask_all(["a", "b", "c"])} == {"The answer is 42."}
        assert server.count == 4


async def test_two_proxies_may_write_to_one_folder(tmp_path):
    async with (
        FakeServer() as server,
        harness(server, tmp_path, use_caching=True) as one,
        harness(server, tmp_path, use_caching=True) as two,
    ):
        await asyncio.gather(one.ask_all([f"one {n}" for n in range(30)]), two.ask_all([f"two {n}" for n in range(30)]))
        async with harness(server, tmp_path, use_caching=True) as third:
            await third.ask_all([f"{name} {n}" for name in ("one", "two") for n in range(30)])
        assert server.count == 60


async def test_answers_that_are_not_to_be_reused_are_asked_again_and_kept(tmp_path):
    async with FakeServer(mode="counter") as server:
        async with harness(server, tmp_path, use_caching=True) as client:
            old = await client.ask()
        async with harness(server, tmp_path, use_caching=True, reuse_cached_responses=False) as client:
            new = await client.ask()
        assert (server.count, old.text == new.text) == (2, False)


async def test_an_answer_is_on_disk_before_the_harness_has_it(tmp_path):
    async with FakeServer() as server, harness(server, tmp_path, use_caching=True) as client:
        said = await client.ask()
        (path,) = (tmp_path / "cache").glob("*.jsonl")
        assert said.text in path.read_text()


def test_a_disk_that_takes_no_more_ends_the_keeping_and_not_the_task(tmp_path, caplog, small_files):
    store = AnswerStore(tmp_path)
    store.put(b"k" * 16, b'"short"')
    with small_files(100):
        store.put(b"l" * 16, b'"%s"' % (b"long" * 100))
    store.put(b"m" * 16, b'"short again"')
    assert (store.get(b"k" * 16), store.get(b"l" * 16), store.get(b"m" * 16)) == (b'"short"', None, None)
    assert "Make room before you resume" in caplog.text
    store.close()


@pytest.fixture
def small_files() -> Callable[[int], AbstractContextManager[None]]:
    """No file of this process may grow beyond so many bytes."""

    @contextmanager
    def limited(size: int) -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited
