"""The endpoint rows of the case list, on real sockets. A test is named after its row."""

import asyncio
import socket
from collections import Counter
from contextlib import ExitStack

import pytest

from nemo_evaluator.errors import RequestError
from nemo_evaluator.models import AdaptiveLimiter, Dialects, RetryPolicy, Timeouts
from tests.fakes.openai_replies import prompt_hash
from tests.fakes.openai_server import Behaviour, FakeServer, When


async def outcomes(client, prompts, **parameters):
    """Content or error kind of each prompt."""

    async def one(prompt):
        try:
            return (await client.chat(prompt, **parameters)).content
        except RequestError as error:
            return error.kind

    return await asyncio.gather(*(one(prompt) for prompt in prompts))


async def error_of(awaitable):
    with pytest.raises(RequestError) as caught:
        await awaitable
    return caught.value


async def test_ec01_the_clock_starts_when_a_request_is_sent(client_of):
    async with FakeServer(Behaviour(delay=0.02)) as server, client_of(server, max_concurrent=32, timeout=1.0) as client:
        found = await outcomes(client, map(str, range(2000)))
    assert Counter(found) == {"The answer is 42.": 2000}
    assert server.peak_connections <= 32


async def test_ec02_a_server_that_never_answers_costs_one_sample(client_of):
    hangs = Behaviour(hang="headers", when=When(prompt="stuck"))
    async with FakeServer(hangs) as server, client_of(server, timeouts=Timeouts(first_byte=0.5)) as client:
        found = await outcomes(client, ["a", "stuck", "b"])
    assert found == ["The answer is 42.", "timeout", "The answer is 42."]


@pytest.mark.parametrize(
    ("hang", "timeouts", "says"),
    [
        ("headers", Timeouts(first_byte=0.05), "did not begin within 0.05 s"),
        ("body", Timeouts(idle=0.05, first_byte=9), "stopped in the middle for 0.05 s"),
        ("headers", Timeouts(total=0.05), "no complete reply within 0.05 s"),
        ("body", Timeouts(total=0.05), "no complete reply within 0.05 s"),
    ],
)
async def test_ec02_each_limit_says_that_it_was_the_one(client_of, hang, timeouts, says):
    async with FakeServer(Behaviour(hang=hang)) as server, client_of(server, timeouts=timeouts) as client:
        error = await error_of(client.chat("hi"))
    assert error.kind == "timeout"
    assert says in str(error)
    assert server.count == 2


async def test_ec02_a_server_that_does_not_even_connect_is_given_up(client_of):
    with socket.socket() as deaf, ExitStack() as queue:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for _ in range(4):
            waiting = queue.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(deaf.getsockname())
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        async with client_of(url, timeouts=Timeouts(connect=0.1)) as client:
            error = await error_of(client.chat("hi"))
    assert (error.kind, str(error)) == ("timeout", "no connection within 0.1 s")


async def test_ec02_a_slow_first_byte_is_not_idling(client_of):
    async with FakeServer(Behaviour(delay=0.2)) as server, client_of(server, timeouts=Timeouts(idle=0.05)) as client:
        assert (await client.chat("hi")).content == "The answer is 42."


async def test_ec03_refusals_for_ever_end_as_errors_of_those_prompts_only(client_of):
    prompts = [f"question {n}" for n in range(100)]
    async with (
        FakeServer(Behaviour(status=429, when=When(share_of_prompts=0.05))) as server,
        client_of(server, max_concurrent=16) as client,
    ):
        found = Counter(await outcomes(client, prompts))
        asks = server.asks()
    refused = found["rate_limit"]
    assert 1 <= refused <= 15
    assert found["The answer is 42."] == 100 - refused
    assert Counter(asks.values()) == {5: refused, 1: 100 - refused}


@pytest.mark.parametrize(("rate", "burst"), [(40, 10), (10, 30)])
async def test_ec04_a_quota_costs_few_requests_and_no_sample(client_of, rate, burst):
    prompts = [str(n) for n in range(60)]
    async with FakeServer(bucket=(rate, burst)) as server, client_of(server, max_concurrent=16) as client:
        found = Counter(await outcomes(client, prompts))
    assert found == {"The answer is 42.": 60}
    assert server.count <= 1.3 * 60


@pytest.mark.parametrize("form", [1, "+2"])
async def test_ec04_retry_after_holds_the_whole_endpoint(client_of, form):
    async with (
        FakeServer(Behaviour(status=429, retry_after=form, when=When(numbers=[0]))) as server,
        client_of(server, max_concurrent=4) as client,
    ):
        refused = asyncio.create_task(client.chat("a"))
        await asyncio.sleep(0.1)
        await client.chat("b")
        await refused
    first, *later = [request.time for request in server.log]
    assert all(moment - first > 0.85 for moment in later)


async def test_ec04_waiting_holds_no_slot(client_of):
    slept = asyncio.Event()

    async def sleep(_seconds):
        await slept.wait()

    async with (
        FakeServer(Behaviour(status=500, when=When(prompt="bad", first=1))) as server,
        client_of(server, max_concurrent=1, retry=RetryPolicy(sleep=sleep)) as client,
    ):
        waiting = asyncio.create_task(client.chat("bad"))
        assert (await asyncio.wait_for(client.chat("good"), 180)).content
        slept.set()
        assert (await waiting).retries == 1


async def test_ec04_a_retry_after_beyond_the_deadline_stops_nobody_else(client_of):
    async with (
        FakeServer(Behaviour(status=429, retry_after=86400, when=When(prompt="bad"))) as server,
        client_of(server) as client,
    ):
        assert await outcomes(client, ["bad"]) == ["rate_limit"]
        assert (await asyncio.wait_for(client.chat("good"), 180)).content


@pytest.mark.parametrize("fields", [["reasoning_content"], ["reasoning"], ["reasoning_content", "reasoning"], []])
async def test_ec05_reasoning_is_found_under_either_name(client_of, fields):
    async with FakeServer() as server, client_of(server) as client:
        server.control(shape={"reasoning": "let me see", "reasoning_fields": fields})
        response = await client.chat("hi")
    assert (response.content, response.reasoning_content) == ("The answer is 42.", "let me see" if fields else None)
    assert response.reasoning_tokens == 3
    assert [name for name in response.raw_response["choices"][0]["message"] if name.startswith("reas")] == fields


async def test_ec07_echoed_logprobs_begin_with_the_prompt(client_of):
    async with FakeServer() as server, client_of(server) as client:
        response = await client.complete("one two three", logprobs=1, echo=True, max_tokens=1)
    values = response.raw_response["choices"][0]["logprobs"]["token_logprobs"]
    assert (len(values), values[0]) == (4, None)
    assert response.content.startswith("one two three")


@pytest.mark.parametrize("echo", ["ignored", "extra"])
async def test_ec07_a_server_without_echo_is_named_as_such(client_of, echo):
    async with FakeServer() as server, client_of(server) as client:
        server.control(shape={"echo": echo})
        error = await error_of(client.complete("one two three", logprobs=1, echo=True, max_tokens=1))
    assert error.kind == "bad_reply"
    assert "echo with logprobs" in str(error)
    assert server.count == 1


async def test_ec21_log_probabilities_that_were_never_computed_are_no_answer(client_of):
    """All choices would score the same, which looks like chance."""
    async with FakeServer() as server, client_of(server) as client:
        server.control(shape={"echo": "zeros"})
        error = await error_of(client.complete("one two three four", logprobs=1, echo=True, max_tokens=1))
    assert (error.kind, server.count) == ("bad_reply", 1)
    assert "every log-probability is 0.0" in str(error)


async def test_ec08_every_prompt_gets_its_own_answer(client_of):
    prompts = [f"question {n}" for n in range(300)]
    async with (
        FakeServer(Behaviour(jitter=0.02), mode="hash") as server,
        client_of(server, max_concurrent=64) as client,
    ):
        found = await outcomes(client, prompts)
    assert found == [prompt_hash(prompt) for prompt in prompts]


@pytest.mark.parametrize(
    ("refuses", "extra", "sent"),
    [
        (["max_tokens"], 1, {"max_completion_tokens": 9}),
        (["max_completion_tokens"], 0, {"max_tokens": 9}),
        (["max_tokens", "max_completion_tokens"], 2, {}),
    ],
)
async def test_ec13_the_token_field_is_learned_once_for_all(client_of, refuses, extra, sent):
    prompts = [str(n) for n in range(64)]
    async with (
        FakeServer(refuses=tuple(refuses)) as server,
        client_of(server, max_tokens=9, max_concurrent=64) as client,
    ):
        found = Counter(await outcomes(client, prompts))
        stats = client.stats()
    assert found == {"The answer is 42.": 64}
    assert server.count == 64 + extra
    assert (stats["errors"], stats["retries"]) == ({}, 0)
    assert {name: value for name, value in server.bodies[-1].items() if name.endswith("tokens")} == sent


async def test_ec13_what_one_client_learned_all_know(client_of):
    dialects = Dialects()
    async with FakeServer(refuses=("max_tokens",)) as server:
        for _ in range(2):
            async with client_of(server, max_tokens=9, dialects=dialects) as client:
                await client.chat("hi")
        async with client_of(server, max_tokens=9, model="another", dialects=dialects) as client:
            await client.chat("hi")
    assert [("max_tokens" in body, body["model"]) for body in server.bodies] == [
        (True, "fake-model"),
        (False, "fake-model"),
        (False, "fake-model"),
        (True, "another"),
        (False, "another"),
    ]


async def test_ec13_many_stop_strings_are_learned_and_still_all_applied(client_of):
    stop = ["S1", "S2", "S3", "S4", "S5"]
    async with FakeServer(answer="yes S5 no", refuses=("stops",)) as server, client_of(server, stop=stop) as client:
        assert await outcomes(client, ["a", "b"]) == ["yes ", "yes "]
    assert [len(body["stop"]) for body in server.bodies] == [5, 4, 4]


async def test_ec13_a_slow_first_answer_does_not_hold_the_others(client_of):
    async with FakeServer(Behaviour(delay=2.5)) as server, client_of(server, max_tokens=9) as client:
        await outcomes(client, ["a", "b", "c"])
    assert server.peak_in_flight == 3


@pytest.mark.parametrize("stops", ["cut", "kept", "ignored"])
async def test_ec15_a_stop_string_is_cut_whatever_the_server_does(client_of, stops):
    async with FakeServer(answer="The answer is 42\nQuestion: next") as server:
        server.control(shape={"stops": stops})
        async with client_of(server, stop=["Question:"]) as client:
            assert (await client.chat("hi")).content == "The answer is 42\n"


async def test_ec15_answers_that_end_within_a_few_characters_are_counted(client_of):
    async with (
        FakeServer(answer="Question: what? It is 42.") as server,
        client_of(server, stop=["Question:"]) as client,
    ):
        await client.chat("hi")
        assert client.stats()["early_stops"] == 1


async def test_ec18_a_keep_alive_connection_closed_by_the_server_costs_no_attempt(client_of):
    prompts = [str(n) for n in range(300)]
    once = RetryPolicy(stop=lambda _state: True)
    async with (
        FakeServer(Behaviour(closes_silently=True, when=When(share=0.3))) as server,
        client_of(server, max_concurrent=16, retry=once) as client,
    ):
        found = Counter(await outcomes(client, prompts))
    assert found == {"The answer is 42.": 300}


async def test_ec18_a_connection_dropped_with_the_request_on_it_is_asked_again_at_once(client_of):
    once = RetryPolicy(stop=lambda _state: True)
    async with (
        FakeServer(Behaviour(drop="headers", when=When(numbers=[1]))) as server,
        client_of(server, retry=once) as client,
    ):
        await client.chat("warm up")
        assert (await client.chat("hi")).content == "The answer is 42."
        stats = client.stats()
    assert (stats["stale_connections"], stats["retries"], server.count) == (1, 0, 3)


async def test_ec18_a_fresh_connection_that_drops_counts(client_of):
    async with FakeServer(Behaviour(drop="headers")) as server, client_of(server) as client:
        error = await error_of(client.chat("hi"))
    assert error.kind == "connection"
    assert server.count == 5


async def test_ec18_a_reply_that_breaks_off_is_asked_again(client_of):
    async with FakeServer(Behaviour(drop="body", when=When(first=1))) as server, client_of(server) as client:
        response = await client.chat("hi")
    assert (response.content, response.retries) == ("The answer is 42.", 1)


async def test_ec18_an_answer_of_five_megabytes_arrives_whole(client_of):
    async with FakeServer(mode="filler", size=5_000_000) as server, client_of(server) as client:
        assert len((await client.chat("hi")).content) == 5_000_000


async def test_ec18_a_question_of_five_megabytes_arrives_whole(client_of):
    async with FakeServer() as server, client_of(server) as client:
        await client.chat("x" * 5_000_000)
    assert len(server.prompts[0]) == 5_000_000


@pytest.mark.parametrize(
    "behaviour",
    [
        {"body": {"error": {"message": "upstream timed out", "code": 504}}},
        {"reply": "no_choices"},
        {"reply": "html"},
        {"reply": "html", "status": 502},
        {"reply": "html", "status": 504},
        {"reply": "empty"},
        {"reply": "truncated"},
        {"reply": "not_an_object"},
        {"status": 500},
        {"status": 409},
        {"shape": {"content": "no_message"}},
    ],
)
async def test_ec19_a_reply_that_is_no_answer_is_asked_again(client_of, behaviour):
    async with FakeServer() as server, client_of(server) as client:
        server.control(behaviours=[{**behaviour, "when": {"first": 1}}])
        response = await client.chat("hi")
    assert (response.content, response.retries) == ("The answer is 42.", 1)


async def test_ec19_the_servers_own_words_reach_the_user(client_of):
    async with (
        FakeServer(Behaviour(status=400, body={"error": {"message": "temperature is out of range"}})) as server,
        client_of(server) as client,
    ):
        error = await error_of(client.chat("hi"))
    assert (error.kind, error.status, server.count) == ("server", 400, 1)
    assert "temperature is out of range" in str(error)


@pytest.mark.parametrize("status", [200, 400])
async def test_the_servers_own_words_are_one_line_that_no_terminal_obeys(client_of, status):
    said = {"error": {"message": "no\n\x1b[2J\x1b]0;title\x07 such\r\nthing", "type": "invalid_request"}}
    async with FakeServer(Behaviour(status=status, body=said)) as server, client_of(server) as client:
        error = await error_of(client.chat("hi"))
    assert str(error).endswith("no [2J ]0;title such thing")


@pytest.mark.parametrize(("content", "text"), [("null", ""), ("parts", "The answer is 42.")])
async def test_content_of_other_types_is_read(client_of, content, text):
    async with FakeServer() as server, client_of(server) as client:
        server.control(shape={"content": content, "usage": "missing"})
        response = await client.chat("hi")
    assert (response.content, response.total_tokens) == (text, None)


async def test_a_prompt_too_long_for_the_model_is_its_own_kind(client_of):
    async with FakeServer(max_model_len=3) as server, client_of(server) as client:
        assert await outcomes(client, ["a b", "a b c d"]) == ["The answer is 42.", "context_length"]


async def test_ec25_an_answer_longer_than_its_budget_is_recorded_and_flagged(client_of):
    usage = {"prompt_tokens": 1, "completion_tokens": 50, "completion_tokens_details": {"reasoning_tokens": 45}}
    async with FakeServer() as server, client_of(server, max_tokens=10) as client:
        server.control(shape={"usage": usage})
        response = await client.chat("hi")
        flagged = client.stats()["over_budget"]
    assert (response.completion_tokens, response.reasoning_tokens, flagged) == (50, 45, 1)


async def test_ec26_what_a_slowing_endpoint_had_in_flight_is_reported(client_of):
    async with (
        FakeServer(Behaviour(delay_per_in_flight=0.005)) as server,
        client_of(server, max_concurrent=6) as client,
    ):
        await outcomes(client, map(str, range(60)))
        state = client.stats()["limiter"]
    assert state["peak_in_flight"] == server.peak_in_flight == 6
    assert 3 < state["mean_in_flight"] <= 6


async def test_ec29_a_wrong_model_name_is_fatal_and_the_right_one_is_suggested(client_of):
    async with (
        FakeServer(model="meta/llama-3.1-8b") as server,
        client_of(server, model="llama-3.1-8b", max_concurrent=8) as client,
    ):
        errors = await asyncio.gather(*(error_of(client.chat(str(n))) for n in range(8)))
    assert {error.kind for error in errors} == {"not_found"}
    assert errors[0].is_fatal
    assert "'meta/llama-3.1-8b'" in str(errors[0])
    assert server.url + "/chat/completions" in str(errors[0])
    assert len(server.other_log) == 1


async def test_ec29_a_wrong_path_is_fatal_and_named(client_of):
    async with FakeServer() as server, client_of(server.root + "/nothing") as client:
        error = await error_of(client.chat("hi"))
    assert (error.kind, server.statuses[404]) == ("not_found", 2)
    assert "/nothing/chat/completions" in str(error)


async def test_ec29_a_server_that_is_still_loading_is_waited_for(client_of):
    policy = RetryPolicy(sleep=lambda _seconds: asyncio.sleep(0.1))
    async with FakeServer(loading_seconds=0.25) as server, client_of(server, retry=policy) as client:
        response = await client.chat("hi")
    assert response.retries >= 2


async def test_a_server_that_is_not_there_is_named(client_of):
    async with FakeServer() as server:
        url = server.url
    async with client_of(url) as client:
        error = await error_of(client.chat("hi"))
    assert error.kind == "connection"
    assert f"cannot connect to 127.0.0.1:{server.port}" in str(error)


async def test_overload_lowers_what_is_in_flight(client_of):
    limiter = AdaptiveLimiter(32)
    async with (
        FakeServer(Behaviour(status=503, when=When(first=32)), Behaviour(delay=0.01)) as server,
        client_of(server, limiter=limiter) as client,
    ):
        found = Counter(await outcomes(client, map(str, range(64))))
    assert found == {"The answer is 42.": 64}
    assert limiter.state()["decreases"] >= 1
