"""What an interceptor changes, keeps and counts."""

import orjson
import pytest
from aiohttp import web

from tests.fakes.openai_server import Behaviour, FakeServer, When
from tests.harness.proxy.worlds import KEY, harness, rows


@pytest.mark.parametrize(
    ("strategy", "content"),
    [(None, "Be brief.\nold"), ("prepend", "Be brief.\nold"), ("append", "old\nBe brief."), ("replace", "Be brief.")],
)
async def test_a_system_message_joins_the_harness_s_or_takes_its_place(tmp_path, strategy, content):
    config = {"use_system_prompt": True, "custom_system_prompt": "Be brief.", "system_prompt_strategy": strategy}
    async with FakeServer() as server, harness(server, tmp_path, **config) as client:
        await client.ask(messages=[{"role": "system", "content": "old"}, {"role": "user", "content": "Why?"}])
        assert server.bodies[0]["messages"] == [
            {"role": "system", "content": content},
            {"role": "user", "content": "Why?"},
        ]


async def test_a_system_message_stands_before_the_prompt_of_a_completion(tmp_path):
    config = {"use_system_prompt": True, "custom_system_prompt": "Be brief."}
    async with FakeServer() as server, harness(server, tmp_path, **config) as client:
        url = client.proxy.url.replace("/chat/completions", "/completions")
        await client.ask(url=url, messages=None, prompt="Why?")
        assert server.bodies[0]["prompt"] == "Be brief.\n\nWhy?"


async def test_parameters_are_removed_added_and_renamed(tmp_path):
    config = {
        "params_to_remove": ["top_p"],
        "params_to_add": {"seed": 7, "chat_template_kwargs": {"thinking": False}},
        "params_to_rename": {"max_tokens": "max_completion_tokens"},
    }
    async with FakeServer() as server, harness(server, tmp_path, **config) as client:
        await client.ask(top_p=0.5, max_tokens=9)
        sent = server.bodies[0]
    assert "top_p" not in sent and "max_tokens" not in sent
    assert (sent["max_completion_tokens"], sent["seed"]) == (9, 7)
    assert sent["chat_template_kwargs"] == {"thinking": False}


async def test_headers_are_added(tmp_path):
    async with FakeServer() as server, harness(server, tmp_path, headers_to_add={"X-Project": "p"}) as client:
        await client.ask()
        assert server.log[0].headers["x-project"] == "p"


async def test_headers_are_removed_and_renamed(tmp_path):
    config = {"headers_to_rename": {"authorization": "api-key"}, "headers_to_remove": ["content-TYPE"]}
    async with FakeServer() as server, harness(server, tmp_path, save_requests=True, **config) as client:
        await client.ask(f"is {KEY} shown?")
        headers = server.log[0].headers
        assert "authorization" not in headers and headers["api-key"] == f"Bearer {KEY}"
        assert headers.get("content-type") != "application/json"
    assert KEY not in (tmp_path / "requests.jsonl").read_text()


async def test_only_the_first_requests_and_responses_are_logged(tmp_path):
    config = {
        "use_request_logging": True,
        "max_logged_requests": 3,
        "use_response_logging": True,
        "max_logged_responses": 2,
    }
    async with FakeServer() as server, harness(server, tmp_path, **config) as client:
        for n in range(5):
            await client.ask(f"question {n}")
    requests, responses = rows(tmp_path / "requests.jsonl"), rows(tmp_path / "responses.jsonl")
    assert [row["payload"]["messages"][0]["content"] for row in requests] == [f"question {n}" for n in range(3)]
    assert [(row["status"], row["response"]["choices"][0]["finish_reason"]) for row in responses] == [(200, "stop")] * 2


async def test_a_limit_counts_what_earlier_sessions_logged(tmp_path):
    async with FakeServer() as server:
        for _ in range(2):
            async with harness(server, tmp_path, save_requests=True, max_saved_requests=3) as client:
                await client.ask_all(["a", "b"])
    assert len(rows(tmp_path / "requests.jsonl")) == 3


async def test_logs_hold_no_secret(tmp_path):
    config = {"save_requests": True, "save_responses": True, "log_failed_requests": True, "use_caching": True}
    leak = Behaviour(body={"error": {"message": f"bad key {KEY}"}}, status=400)
    async with FakeServer(leak) as server, harness(server, tmp_path, **config) as client:
        await client.ask(f"my key is {KEY}")
    found = [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert (tmp_path / "failed_requests.jsonl").exists()
    assert not found


async def test_failed_requests_are_logged_with_what_the_endpoint_said(tmp_path):
    fault = Behaviour(status=400, when=When(prompt="bad"))
    async with FakeServer(fault) as server, harness(server, tmp_path, log_failed_requests=True) as client:
        await client.ask_all(["good", "bad"])
    (row,) = rows(tmp_path / "failed_requests.jsonl")
    assert (row["status"], row["payload"]["messages"][0]["content"], row["attempts"]) == (400, "bad", 1)
    assert "message" in orjson.loads(row["said"])["error"]


async def test_reasoning_is_moved_out_of_the_answer_and_counted(tmp_path):
    config = {"process_reasoning_traces": True, "start_reasoning_token": "<think>", "use_caching": True}
    answer = "<think>six times seven</think>\n\n42"
    async with FakeServer(answer=answer) as server, harness(server, tmp_path, **config) as client:
        first, again = await client.ask(), await client.ask()
        counts = client.proxy.metrics()["reasoning"]
    message = first.json["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("42", "six times seven")
    assert first.text == again.text
    assert (counts["responses_with_reasoning"], counts["reasoning_finished_count"]) == (2, 2)


async def test_reasoning_that_never_ends_may_be_kept_or_dropped(tmp_path):
    config = {"use_reasoning": True, "start_reasoning_token": "<think>"}
    async with FakeServer(answer="<think>well, six") as server:
        async with harness(server, tmp_path, **config) as client:
            assert (await client.ask()).content == "<think>well, six"
        async with harness(server, tmp_path, **config, include_if_reasoning_not_finished=False) as client:
            assert (await client.ask()).content == ""


async def test_statistics_tell_what_came_from_where(tmp_path):
    fault = Behaviour(status=400, when=When(prompt="bad"))
    async with FakeServer(fault) as server, harness(server, tmp_path, use_caching=True) as client:
        for prompt in ("a", "b", "a", "bad"):
            await client.ask(prompt)
        stats = client.proxy.metrics()["response_stats"]
    assert (stats["count"], stats["successful_count"], stats["cached_count"]) == (4, 3, 1)
    assert (stats["status_codes"], stats["finish_reason"]) == ({"200": 3, "400": 1}, {"stop": 3})
    assert stats["avg_completion_tokens"] > 0


async def test_progress_is_written_and_told(tmp_path):
    told: list[int] = []

    async def listen(request: web.BaseRequest) -> web.Response:
        told.append((await request.json())["samples_processed"])
        return web.Response()

    runner = web.ServerRunner(web.Server(listen))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = "http://{}:{}/progress".format(*runner.addresses[0])
    config = {"use_progress_tracking": True, "progress_tracking_url": url, "progress_tracking_interval": 2}
    async with FakeServer() as server, harness(server, tmp_path, **config) as client:
        for n in range(5):
            await client.ask(f"question {n}")
    await runner.cleanup()
    assert (tmp_path / "progress").read_text() == "5\n"
    assert told == sorted(told) and told[-1] == 5


async def test_a_refusal_can_end_the_task(tmp_path):
    config = {"use_raise_client_errors": True}
    async with FakeServer(Behaviour(status=404)) as server, harness(server, tmp_path, **config) as client:
        await client.ask()
        assert client.proxy.failed.is_set()
        assert "HTTP 404" in client.proxy.failure
