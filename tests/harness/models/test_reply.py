import re

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_evaluator.models.reply import Reading, read_reply
from nemo_evaluator.models.retry import AttemptFailed

CHAT = Reading()


def message(**fields):
    return orjson.dumps({"choices": [{"index": 0, "finish_reason": "stop", "message": fields}]})


def content_of(text, *, stop=(), pattern=None):
    reading = Reading(stop=stop, reasoning_pattern=re.compile(pattern, re.DOTALL) if pattern else None)
    return read_reply(200, {}, message(content=text), reading).content


def failure(status, body, headers=None, secrets=()):
    with pytest.raises(AttemptFailed) as caught:
        read_reply(status, headers or {}, body, Reading(secrets=secrets))
    return caught.value


def error(text, **fields):
    return orjson.dumps({"error": {"message": text, **fields}})


@pytest.mark.parametrize(
    ("fields", "reasoning"),
    [
        ({"reasoning_content": "hm"}, "hm"),
        ({"reasoning": "hm"}, "hm"),
        ({"reasoning_content": "hm", "reasoning": "hm"}, "hm"),
        ({"reasoning_content": None}, None),
        ({}, None),
    ],
)
def test_ec05_both_names_of_reasoning_give_one_record(fields, reasoning):
    response = read_reply(200, {}, message(content="42", **fields), CHAT)
    assert (response.content, response.reasoning_content) == ("42", reasoning)
    assert response.raw_response["choices"][0]["message"] == {"content": "42", **fields}


@pytest.mark.parametrize(
    ("content", "text"),
    [(None, ""), ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"), ("x", "x")],
)
def test_content_is_text_whatever_the_server_sends(content, text):
    assert content_of(content) == text


def test_missing_usage_is_unknown_and_not_zero():
    response = read_reply(200, {}, message(content="x"), CHAT)
    assert (response.prompt_tokens, response.completion_tokens, response.reasoning_tokens) == (None, None, None)


def test_reasoning_tokens_come_from_the_details():
    usage = {"prompt_tokens": 1, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 7}}
    body = orjson.dumps({**orjson.loads(message(content="x")), "usage": usage})
    assert read_reply(200, {}, body, CHAT).reasoning_tokens == 7


def test_ec08_the_choice_of_index_zero_is_taken():
    choices = [{"index": n, "message": {"content": str(n)}} for n in (2, 0, 1)]
    assert read_reply(200, {}, orjson.dumps({"choices": choices}), CHAT).content == "0"


def test_the_earliest_stop_string_wins_and_is_cut():
    assert content_of("one STOP two END", stop=("END", "STOP")) == "one "


def test_ec15_a_stop_string_never_cuts_thinking():
    assert content_of("<think>Question: hm</think>The answer\nQuestion: next", stop=("Question:",)) == (
        "<think>Question: hm</think>The answer\n"
    )
    assert content_of("<think>Question: hm, cut off", stop=("Question:",)) == "<think>Question: hm, cut off"
    assert content_of("Question: hm</think>yes", stop=("Question:",)) == "Question: hm</think>yes"


def test_ec15_a_stop_string_in_separated_reasoning_is_left_alone():
    body = message(content="42", reasoning_content="Question: what is it")
    response = read_reply(200, {}, body, Reading(stop=("Question:",)))
    assert (response.content, response.reasoning_content) == ("42", "Question: what is it")


def test_an_answer_cut_by_us_is_stopped_and_not_truncated():
    body = orjson.dumps({"choices": [{"finish_reason": "length", "message": {"content": "4 STOP and so on"}}]})
    assert read_reply(200, {}, body, Reading(stop=("STOP",))).finish_reason == "stop"


def test_reasoning_pattern_moves_its_matches_out_of_the_content():
    assert content_of("<r>hm\nhm</r> 42", pattern=r"<r>.*?</r>") == "42"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "empty"),
        (b"<html>Bad gateway</html>", "web page"),
        (message(content="x")[:-9], "cut off"),
        (orjson.dumps({"choices": []}), "without choices"),
        (orjson.dumps({"choices": [{"index": 0}]}), "without message"),
        (b"[1]", "no JSON object"),
        (message(content=7), "content of type int"),
    ],
)
def test_ec19_a_200_that_is_no_answer_is_a_bad_reply_worth_a_retry(body, says):
    caught = failure(200, body)
    assert (caught.kind, caught.is_transient) == ("bad_reply", True)
    assert says in str(caught)


def test_ec19_the_first_two_kilobytes_of_a_bad_body_are_shown():
    assert 2048 < len(str(failure(200, b"<p>" + b"x" * 9000))) < 2200


@pytest.mark.parametrize(
    ("status", "body", "kind", "is_transient"),
    [
        (401, error("bad key"), "auth", False),
        (403, b"", "auth", False),
        (404, b"<html>nginx</html>", "not_found", False),
        (307, b"", "not_found", False),
        (408, b"", "timeout", True),
        (409, b"", "server", True),
        (429, error("slow down"), "rate_limit", True),
        (429, error("You exceeded your current quota", code="insufficient_quota"), "rate_limit", False),
        (400, error("This model's maximum context length is 4096 tokens."), "context_length", False),
        (400, error("The prompt is too long: 9000 tokens"), "context_length", False),
        (400, error("blocked by content management policy", code="content_filter"), "content_filter", False),
        (403, error("violates our usage policies"), "content_filter", False),
        (400, error("temperature must be positive"), "server", False),
        (500, b"oops", "server", True),
        (502, b"<html>", "server", True),
        (503, b"", "server", True),
        (504, b"", "timeout", True),
    ],
)
def test_each_status_has_its_kind(status, body, kind, is_transient):
    caught = failure(status, body)
    assert (caught.kind, caught.is_transient, caught.status) == (kind, is_transient, status)


@pytest.mark.parametrize(
    ("body", "kind", "is_transient"),
    [
        (error("upstream is gone", code=502), "server", True),
        (error("something broke"), "server", True),
        (orjson.dumps({"error": "something broke"}), "server", True),
        (error("slow down", code="rate_limit_exceeded"), "rate_limit", True),
        (error("no", code=429), "rate_limit", True),
        (error("The model `x` does not exist", code="model_not_found"), "not_found", False),
        (error("Incorrect API key provided"), "auth", False),
        (error("maximum context length is 10 tokens"), "context_length", False),
        (error("bad temperature", type="invalid_request_error"), "server", False),
    ],
)
def test_ec19_an_error_object_inside_a_200_is_classified_by_what_it_says(body, kind, is_transient):
    caught = failure(200, body)
    assert (caught.kind, caught.is_transient) == (kind, is_transient)


def test_an_error_inside_a_choice_is_an_error():
    choice = {"finish_reason": "error", "error": {"message": "upstream is gone", "code": 502}, "message": {}}
    caught = failure(200, orjson.dumps({"choices": [choice]}))
    assert (caught.kind, caught.is_transient) == ("server", True)


NAMES = ["choices", "message", "content", "text", "usage", "finish_reason", "reasoning", "type", "error"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=25,
)


@given(JSON, st.sampled_from(["chat", "completions"]))
def test_no_json_whatever_breaks_the_reader(data, protocol):
    wrapped = {"choices": [data], "usage": data}
    for value in (data, wrapped):
        try:
            response = read_reply(200, {}, orjson.dumps(value), Reading(protocol=protocol, stop=("x",)))
        except AttemptFailed:
            continue
        assert isinstance(response.content, str)


def test_content_filter_as_finish_reason_is_an_error_and_no_empty_answer():
    body = orjson.dumps({"choices": [{"finish_reason": "content_filter", "message": {"content": ""}}]})
    assert failure(200, body).kind == "content_filter"


def test_what_the_server_said_is_in_the_message():
    assert "temperature must be positive" in str(failure(400, error("temperature must be positive")))
    assert "plain words" in str(failure(400, b"plain\n words"))
    assert "why not" in str(failure(422, orjson.dumps({"detail": "why not"})))


@pytest.mark.parametrize(
    "said", ["Incorrect API key: my-own-key", "got Bearer abc.def-123", "key sk-not-a-real-key-000"]
)
def test_secrets_in_the_servers_words_are_masked(said):
    text = str(failure(401, error(said), secrets=("my-own-key",)))
    assert "***" in text
    assert not re.search(r"my-own-key|abc\.def-123|sk-not", text)


def test_a_redirect_names_its_target():
    assert "https://new/v1" in str(failure(308, b"", {"Location": "https://new/v1"}))


def test_legacy_completion_text_is_the_content():
    body = orjson.dumps({"choices": [{"text": "4", "finish_reason": "length"}], "usage": None})
    response = read_reply(200, {}, body, Reading(protocol="completions"))
    assert (response.content, response.finish_reason) == ("4", "length")
