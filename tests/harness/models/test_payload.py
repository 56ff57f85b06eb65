import pytest

from nemo_evaluator.errors import UsageError
from nemo_evaluator.models.payload import (
    Dialect,
    Generation,
    chat_messages,
    completion_prompt,
    endpoint_url,
    generation_fields,
    redact_url,
)

UNSUPPORTED = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
)


@pytest.mark.parametrize(
    "base",
    [
        "http://host:8000",
        "http://host:8000/",
        "http://host:8000/v1",
        "http://host:8000/v1/",
        "http://host:8000/v1/chat/completions",
        "http://host:8000/v1/completions/",
    ],
)
def test_every_spelling_of_the_base_url_means_one_endpoint(base):
    assert endpoint_url(base, "chat") == "http://host:8000/v1/chat/completions"
    assert endpoint_url(base, "completions") == "http://host:8000/v1/completions"


@pytest.mark.parametrize(
    ("base", "url"),
    [
        (
            "https://h/openai/deployments/x?api-version=1",
            "https://h/openai/deployments/x/chat/completions?api-version=1",
        ),
        ("https://h/v1beta/openai/", "https://h/v1beta/openai/chat/completions"),
        ("https://h/gateway/chat/completions", "https://h/gateway/chat/completions"),
    ],
)
def test_a_path_and_a_query_of_the_user_are_kept(base, url):
    assert endpoint_url(base, "chat") == url


@pytest.mark.parametrize(
    "base",
    [
        "host:8000/v1",
        "ftp://host/v1",
        "",
        "http://",
        "http://host /v1",
        "http://http://host",
        "http://h:port",
        "http://h/\n",
    ],
)
def test_junk_is_refused_in_one_line_that_says_what_is_accepted(base):
    with pytest.raises(UsageError) as caught:
        endpoint_url(base, "chat")
    assert "\n" not in str(caught.value)
    assert "http://" in str(caught.value)


def test_a_refused_url_does_not_show_its_password():
    with pytest.raises(UsageError) as caught:
        endpoint_url("ftp://user:not-a-password@host/v1", "chat")
    assert "not-a-password" not in str(caught.value)


def test_redacted_url_keeps_names_and_hides_values():
    url = "https://user:pw@host:1/v1?key=abc&api-version=2#x"
    assert redact_url(url) == "https://***@host:1/v1?key=***&api-version=***"


def test_system_prompt_leads_the_messages():
    messages = [{"role": "user", "content": "hi"}]
    assert chat_messages("", "be brief", messages)[0] == {"role": "system", "content": "be brief"}


def test_system_prompt_replaces_the_one_in_the_messages():
    messages = [{"role": "system", "content": "old"}, {"role": "user", "content": "hi"}]
    assert chat_messages("", "new", messages) == [{"role": "system", "content": "new"}, messages[1]]


def test_messages_of_the_caller_are_not_changed():
    messages = [{"role": "system", "content": "old"}, {"role": "user", "content": "hi"}]
    chat_messages("", "new", messages)
    assert messages[0]["content"] == "old"


def test_system_prompt_stands_before_a_completion_prompt():
    assert completion_prompt("Q: 1+1", "be brief") == "be brief\n\nQ: 1+1"


def test_only_what_was_given_is_sent():
    assert generation_fields(Generation(), Dialect()) == {}
    assert generation_fields(Generation(temperature=0.0, seed=0), Dialect()) == {"temperature": 0.0, "seed": 0}


def test_extra_body_wins_and_never_meets_a_second_token_field():
    generation = Generation(max_tokens=5, top_p=0.1, extra_body={"top_p": 0.9, "max_completion_tokens": 7})
    assert generation_fields(generation, Dialect()) == {"top_p": 0.9, "max_completion_tokens": 7}


def test_refused_max_tokens_becomes_max_completion_tokens():
    learned = Dialect().learn(400, UNSUPPORTED, {"max_tokens": 5})
    assert learned is not None
    assert generation_fields(Generation(max_tokens=5), learned) == {"max_completion_tokens": 5}


def test_refused_max_completion_tokens_after_max_tokens_leaves_no_limit():
    learned = Dialect().learn(400, UNSUPPORTED, {"max_tokens": 5})
    assert learned is not None
    learned = learned.learn(400, "Unrecognized request argument: max_completion_tokens", {"max_completion_tokens": 5})
    assert learned is not None
    assert generation_fields(Generation(max_tokens=5), learned) == {}


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "max_tokens is too large: 99999. This model supports at most 4096 completion tokens"),
        (400, "This model's maximum context length is 4096 tokens, you asked for max_tokens=5000"),
        (500, UNSUPPORTED),
        (400, "temperature is not supported"),
    ],
)
def test_other_refusals_teach_nothing(status, message):
    assert Dialect().learn(status, message, {"max_tokens": 99999}) is None


def test_too_many_stop_strings_are_cut_to_four_on_the_wire():
    stop = ("a", "b", "c", "d", "e")
    message = "Invalid 'stop': array too long. Expected an array with maximum length 4, but got 5 instead."
    learned = Dialect().learn(400, message, {"stop": list(stop)})
    assert learned is not None
    assert generation_fields(Generation(stop=stop), learned) == {"stop": ["a", "b", "c", "d"]}
