"""What is found before the first task: one line each, with what it means and what to do."""

import asyncio
import socket
import ssl
import time

import pytest
import trustme

from nemo_evaluator.direct.plan import parse_plan
from nemo_evaluator.direct.preflight import (
    check_endpoint,
    check_known_tasks,
    check_storage,
    check_subsets,
    check_task_kinds,
    needs_logprobs,
)
from nemo_evaluator.direct.probe import Endpoint
from tests.fakes.openai_replies import Shape
from tests.fakes.openai_server import Behaviour, FakeServer, When
from tests.harness.direct.world import install_harness, plan_document, task_document

TOKEN = "sk-not-a-real-key"


async def findings(server, *tasks, token=None, patience=5.0, said=None, **model):
    kind = model.setdefault("endpoint_type", "completions")
    path = "/chat/completions" if kind == "chat" else "/completions"
    plan = parse_plan(plan_document("/results", tasks or ("gsm8k",), model=model))
    endpoint = Endpoint(server.url + path, token, timeout=2)
    say = (said if said is not None else []).append
    return await asyncio.to_thread(check_endpoint, plan, endpoint, time.sleep, say, patience)


@pytest.mark.parametrize("kind", ["completions", "chat"])
async def test_an_endpoint_that_serves_the_model_is_fine(kind):
    async with FakeServer(model="fake-model", api_key=TOKEN) as server:
        assert await findings(server, token=TOKEN, endpoint_type=kind) == []
    assert server.count == 1 and server.bodies[0]["max_tokens"] == 1


async def test_a_handle_that_is_not_served_and_the_nearest_that_is():
    async with FakeServer(model="fake-model-v2", models=("something-else",)) as server:
        [line] = await findings(server)
    assert "does not serve 'fake-model'" in line and "did you mean 'fake-model-v2'" in line
    assert "EVAL_MODEL_HANDLE" in line and server.count == 0


async def test_a_server_without_a_list_of_models_is_asked_all_the_same():
    async with FakeServer(Behaviour(status=404, when=When(path="/models"))) as server:
        assert await findings(server) == []
    assert server.count == 1


@pytest.mark.parametrize(("name", "advice"), [("ENDPOINT_TOKEN", "valid token"), (None, "EVAL_API_KEY_NAME")])
async def test_a_token_that_is_not_accepted(name, advice):
    async with FakeServer(api_key=TOKEN) as server:
        [line] = await findings(server, token="sk-not-a-real-key-either" if name else None, api_key_name=name)
    assert "HTTP 401" in line and advice in line and TOKEN not in line


async def test_a_token_that_only_the_model_wants():
    async with FakeServer(Behaviour(status=403)) as server:
        [line] = await findings(server, token=TOKEN)
    assert "HTTP 403" in line


async def test_a_model_that_fails_its_first_request():
    async with FakeServer(Behaviour(status=500)) as server:
        [line] = await findings(server)
    assert "first request failed (HTTP 500" in line


@pytest.mark.parametrize("reply", ["html", "empty", "no_choices", "truncated", "error", "not_an_object"])
async def test_a_reply_that_is_no_answer(reply):
    async with FakeServer(Behaviour(reply=reply)) as server:
        [line] = await findings(server)
    assert "first request failed" in line and "\n" not in line


async def test_a_server_that_never_answers_a_request_is_found_in_time():
    async with FakeServer(Behaviour(hang="headers")) as server:
        [line] = await findings(server)
    assert "no answer" in line


async def test_a_model_that_wants_the_newer_limit_is_asked_again():
    async with FakeServer(refuses=("max_tokens",)) as server:
        assert await findings(server, endpoint_type="chat") == []
    assert server.count == 2


async def test_an_endpoint_that_is_loading_is_waited_for():
    said = []
    async with FakeServer(loading_seconds=1.5) as server:
        assert await findings(server, said=said) == []
    assert len(said) == 1 and "waiting up to 5 s" in said[0]


async def test_one_that_is_still_loading_at_the_deadline_is_told():
    async with FakeServer(loading_seconds=60) as server:
        [line] = await findings(server, patience=0.5)
    assert "does not answer (HTTP 503" in line


async def test_one_that_does_not_listen_yet_is_waited_for():
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    late = FakeServer()
    late.port = port
    asking = asyncio.create_task(findings(late))
    await asyncio.sleep(0.5)
    await late.start(port)
    assert await asking == []
    await late.stop()


async def test_a_host_that_does_not_exist_is_told_at_once():
    plan = parse_plan(plan_document("/results"))
    endpoint = Endpoint("http://no-such-host.invalid/v1/completions", None)
    [line] = await asyncio.to_thread(check_endpoint, plan, endpoint, time.sleep, print, 60)
    assert "does not answer" in line and "EVAL_ENDPOINT_URL" in line


@pytest.mark.parametrize(("echo", "flaw"), [("honoured", None), ("ignored", "echo is ignored")])
async def test_log_probabilities_of_prompts_are_probed_for(echo, flaw):
    async with FakeServer(answer="x", shape=Shape(echo=echo)) as server:
        found = await findings(server, "hellaswag", "gsm8k")
    assert server.bodies[-1]["echo"] is True
    if flaw is None:
        assert found == []
    else:
        assert flaw in found[0] and "hellaswag would score chance" in found[0] and "gsm8k" not in found[0]


@pytest.mark.parametrize(
    ("values", "flaw"),
    [
        ([0.0] * 10, "first token has a log-probability"),
        ([None] * 10, "some tokens have none"),
        ([None, *[0.0] * 9], "all of them are 0"),
        ([-1.0], "echo is ignored"),
        (None, "echo is ignored"),
    ],
)
async def test_log_probabilities_that_are_none(values, flaw):
    body = {"choices": [{"text": "x", "logprobs": {"token_logprobs": values}}]}
    async with FakeServer(Behaviour(body=body)) as server:
        [line] = await findings(server, "arc_challenge")
    assert flaw in line


async def test_a_server_that_knows_no_log_probabilities():
    async with FakeServer(Behaviour(body={"choices": [{"text": "x", "logprobs": None}]})) as server:
        [line] = await findings(server, "arc_challenge")
    assert "no token_logprobs" in line


async def test_generative_tasks_need_no_log_probabilities():
    async with FakeServer(shape=Shape(echo="ignored")) as server:
        assert await findings(server, "gsm8k") == []
    assert server.count == 1


async def test_loopback_is_never_proxied(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with FakeServer() as server:
        assert await findings(server) == []


async def test_other_hosts_are(monkeypatch):
    async with FakeServer(model="fake-model") as proxy:
        monkeypatch.setenv("http_proxy", proxy.root)
        answer = await asyncio.to_thread(Endpoint("http://model.invalid/v1/completions", None).models)
    assert answer.status in (200, 404) and proxy.other_log[0].path == "http://model.invalid/v1/models"


async def test_a_token_does_not_follow_a_redirect():
    async with FakeServer() as other:
        location = f"HTTP/1.1 307 Go\r\nLocation: {other.url}/models\r\nContent-Length: 0\r\n\r\n".encode()

        async def redirect(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(location)
            writer.close()

        server = await asyncio.start_server(redirect, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        answer = await asyncio.to_thread(Endpoint(f"http://127.0.0.1:{port}/v1/completions", TOKEN).models)
        server.close()
    assert answer.status == 307 and not other.other_log


async def test_a_private_authority_is_known_by_ssl_cert_file(monkeypatch, tmp_path):
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    async with FakeServer(ssl=context) as server:
        [line] = await findings(server)
        assert "certificate" in line.lower()
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert await findings(server) == []


def plan_of(*tasks, **changes):
    return parse_plan(plan_document("/results", tasks, **changes))


def test_a_task_of_many_subsets_wants_one_of_them():
    [line] = check_subsets(plan_of("mmlu_prox_completions"))
    assert "350,000" in line and "params.task=mmlu_prox_en," in line and "allow_all_subsets=true" in line
    assert check_subsets(plan_of(task_document("global_mmlu", {"task": "global_mmlu_de"}))) == []
    assert check_subsets(plan_of("mmlu_prox_completions", allow_all_subsets=True)) == []


def test_a_task_of_log_probabilities_cannot_be_asked_in_a_chat():
    [line] = check_task_kinds(plan_of("hellaswag", "ifeval", model={"endpoint_type": "chat"}))
    assert "hellaswag" in line and "/v1/completions" in line
    assert check_task_kinds(plan_of("hellaswag")) == []


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("adlr_arc_challenge_llama_25_shot", True),
        ("hellaswag", True),
        ("milu_Hindi", True),
        ("mmlu_logits", True),
        ("lm-evaluation-harness.piqa", True),
        ("gsm8k", False),
        ("arc_challenge_chat", False),
        ("mmlu_instruct", False),
        ("mmlu_prox_completions", False),
        ("adlr_mmlu", False),
    ],
)
def test_which_tasks_compare_log_probabilities(task, answer):
    assert needs_logprobs(plan_of(task).tasks[0]) is answer


def test_a_task_that_the_image_does_not_have_and_the_nearest_it_has(tmp_path):
    command = install_harness(tmp_path / "bin")
    [line] = check_known_tasks(plan_of("helaswag", "gsm8k"), command, {"PATH": "/usr/bin"})
    assert "helaswag is not in this harness" in line and "did you mean 'hellaswag'" in line


@pytest.mark.parametrize("text", ["#!/bin/false\n", "#!/bin/sh\necho no list\n", "no program"])
def test_a_list_that_cannot_be_read_finds_nothing(tmp_path, text):
    command = tmp_path / "nemo-evaluator"
    command.write_text(text)
    command.chmod(0o755)
    assert check_known_tasks(plan_of("helaswag"), command, {}) == []


def test_storage_that_takes_nothing(tmp_path):
    assert check_storage(tmp_path / "a/b") == [] and list(tmp_path.iterdir()) == []
    [line] = check_storage_of("/proc/none/results")
    assert "cannot be written" in line and "EVAL_RESULTS_DIR" in line


def check_storage_of(path):
    return check_storage(parse_plan(plan_document(path)).output_dir)
