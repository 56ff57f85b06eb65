import pytest

from nemotron.endpoint import Answer, Endpoint
from nemotron.preflight import flaw_of_echo, needs_logprobs
from tests.fakes.openai_replies import Shape
from tests.fakes.openai_server import Behaviour, FakeServer, When
from tests.launcher.preflight.conftest import TOKEN


@pytest.mark.parametrize("kind", ["completions", "chat"])
async def test_a_good_endpoint_has_no_findings(look, kind):
    async with FakeServer() as server:
        assert await look(server.url, kind=kind) == []


async def test_a_handle_that_is_not_served_is_answered_with_the_near_one(look):
    async with FakeServer(model="llama-3-8b-base", models=("other",)) as server:
        (finding,) = await look(server.url, model="llama-3-8b")
    assert finding.severity == "stop"
    assert str(finding) == (
        "The endpoint does not serve 'llama-3-8b': every request would get HTTP 404; "
        "set EVAL_MODEL_HANDLE to the served name; the nearest is 'llama-3-8b-base'."
    )


async def test_without_a_list_the_first_request_tells(look):
    async with FakeServer(Behaviour(When(path="/models"), status=404), model="served") as server:
        (finding,) = await look(server.url, model="alias")
    assert "A first request failed (HTTP 404" in str(finding) and "EVAL_MODEL_HANDLE" in str(finding)


async def test_a_refused_token_is_named_by_its_variable_and_never_shown(look):
    async with FakeServer(api_key="sk-another-not-real-key") as server:
        (finding,) = await look(server.url, key="ENDPOINT_TOKEN", environ={"ENDPOINT_TOKEN": TOKEN})
    assert "refuses the token in ENDPOINT_TOKEN" in str(finding) and TOKEN not in str(finding)


async def test_a_token_that_is_missing_is_asked_for(look):
    async with FakeServer(api_key=TOKEN) as server:
        (finding,) = await look(server.url)
    assert "wants a token" in str(finding) and "EVAL_API_KEY_NAME" in str(finding)


async def test_the_token_goes_along(look):
    async with FakeServer(api_key=TOKEN) as server:
        assert await look(server.url, key="ENDPOINT_TOKEN", environ={"ENDPOINT_TOKEN": TOKEN}) == []


async def test_what_a_server_repeats_of_a_token_is_masked(look):
    async with FakeServer(Behaviour(When(path="/models"), status=401, body=f"no {TOKEN}")) as server:
        (finding,) = await look(server.url, key="ENDPOINT_TOKEN", environ={"ENDPOINT_TOKEN": TOKEN})
    assert TOKEN not in str(finding)


async def test_waits_while_the_model_loads(look):
    async with FakeServer(Behaviour(When(path="/models", first=3), status=503)) as server:
        assert await look(server.url) == []


@pytest.mark.parametrize("status", [502, 503])
async def test_an_endpoint_that_is_not_ready_in_time_is_a_note(look, status):
    async with FakeServer(Behaviour(When(path="/models"), status=status)) as server:
        (finding,) = await look(server.url)
    assert finding.severity == "note" and "is not ready" in str(finding)


async def test_what_cannot_be_reached_from_here_is_said_and_not_guessed(look):
    async with FakeServer() as server:
        url = server.url
    (finding,) = await look(url, "hellaswag")
    assert finding.severity == "note"
    assert "cannot be reached from here" in str(finding) and "before its first task" in str(finding)


async def test_a_model_that_only_takes_the_newer_limit_passes(look):
    async with FakeServer(refuses=("max_tokens",)) as server:
        assert await look(server.url, kind="chat") == []


@pytest.mark.parametrize("reply", ["html", "empty", "no_choices", "not_an_object", "error"])
async def test_an_answer_that_is_none_stops(look, reply):
    async with FakeServer(Behaviour(reply=reply)) as server:
        (finding,) = await look(server.url)
    assert finding.severity == "stop" and "\n" not in str(finding)


# Log-probabilities


async def test_log_probability_tasks_pass_where_echo_is_honoured(look):
    async with FakeServer() as server:
        assert await look(server.url, "hellaswag", "adlr_arc_challenge_llama_25_shot") == []
        assert [body.get("echo") for body in server.bodies] == [None, True]


async def test_log_probability_tasks_stop_where_echo_is_ignored(look):
    async with FakeServer(shape=Shape(echo="ignored")) as server:
        (finding,) = await look(server.url, "gsm8k", "hellaswag")
    assert "echo is ignored" in str(finding) and "hellaswag would score chance" in str(finding)


async def test_tasks_that_generate_need_no_log_probabilities(look):
    async with FakeServer(shape=Shape(echo="ignored")) as server:
        assert await look(server.url, "gsm8k") == []
        assert len(server.bodies) == 1


async def test_log_probability_tasks_stop_at_a_chat_endpoint(look):
    async with FakeServer() as server:
        (finding,) = await look(server.url, "hellaswag", kind="chat")
    assert "a chat endpoint has none" in str(finding)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hellaswag", True),
        ("adlr_arc_challenge_llama_25_shot", True),
        ("lm-evaluation-harness.winogrande", True),
        ("milu_Hindi", True),
        ("gsm8k", False),
        ("arc_challenge_chat", False),
        ("mmlu_instruct", False),
        ("mmlu_prox_completions", False),
    ],
)
def test_knows_which_tasks_compare_log_probabilities(name, expected):
    assert needs_logprobs(name) is expected


def reply(values, prompt_tokens=4) -> Answer:
    content = {"choices": [{"logprobs": {"token_logprobs": values}}], "usage": {"prompt_tokens": prompt_tokens}}
    return Answer(200, "", content)


@pytest.mark.parametrize(
    ("values", "flaw"),
    [
        ([None, -1.0, -2.0, -0.5, -0.1], None),
        ([None, -1.0, -2.0, -0.5], None),
        ([-0.1], "echo is ignored"),
        ([], "echo is ignored"),
        (None, "echo is ignored"),
        ([-1.0, -1.0, -2.0, -0.5], "the first token has a value"),
        ([None, None, -2.0, -0.5], "tokens after the first have none"),
        ([None, 0, 0.0, 0], "all of them are 0"),
    ],
)
def test_holds_the_echo_against_the_tokens_of_the_prompt(values, flaw):
    found = flaw_of_echo(reply(values))
    assert found is None if flaw is None else flaw in found


def test_a_secret_url_shows_neither_user_nor_query():
    with Endpoint("http://ann:not-real@127.0.0.1:9/v1/completions?sig=not-real", None) as endpoint:
        assert "not-real" not in endpoint.shown + endpoint.models().said


# Real


@pytest.mark.model
async def test_a_real_server_that_ignores_echo_is_found_out(look, model_url):
    findings = await look(model_url, "hellaswag", model="gemma3-270m")
    assert any("no log-probabilities" in str(finding) for finding in findings), findings
