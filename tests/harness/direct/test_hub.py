"""Datasets and tokenizers, looked for in the job."""

import asyncio
import os
import shutil
import subprocess
import sys
import time

import pytest

from nemo_evaluator.direct.hub import check_hub
from nemo_evaluator.direct.plan import parse_plan
from tests.fakes.openai_server import Behaviour, FakeServer, When
from tests.harness.direct.world import plan_document, task_document
from tests.hub_cache import prepared, snapshot

NOWHERE = "http://127.0.0.1:9"
TOKEN = "hf_not_a_real_token"


def of(environ, *, datasets=(), tokenizer=None, kind="completions", model="fake-model"):
    extra = {"tokenizer_backend": "huggingface", "tokenizer": tokenizer} if tokenizer != "" else {}
    task = {**task_document("gsm8k", {"extra": extra}), "datasets": list(datasets)}
    url = f"http://127.0.0.1:9/v1/{'chat/' if kind == 'chat' else ''}completions"
    plan = plan_document("/results", [task], model={"id": model, "endpoint_type": kind, "endpoint_url": url})
    return check_hub(parse_plan(plan), environ)


@pytest.mark.hub
def test_what_the_hub_has_passes(hub):
    assert of({"HF_ENDPOINT": hub}, datasets=["openai/gsm8k", "openai/gsm8k@main"], tokenizer="example/small-bpe") == []


@pytest.mark.hub
@pytest.mark.parametrize("token", [f"{TOKEN}\nmore", f"{TOKEN}\u0142"])
def test_a_token_that_no_request_can_carry_is_not_shown(hub, token):
    found = of({"HF_ENDPOINT": hub, "HF_TOKEN": token}, datasets=["openai/gsm8k"])
    assert all(TOKEN not in line for line in found)


@pytest.mark.hub
@pytest.mark.parametrize("kind", ["completions", "chat"])
def test_what_the_hub_lacks_is_named_with_its_task(hub, kind):
    found = of({"HF_ENDPOINT": hub}, datasets=["openai/gsm9k"], tokenizer="org/none", kind=kind)
    assert [line.split(" cannot be loaded, gsm8k would fail: ")[0] for line in found] == [
        "The dataset openai/gsm9k",
        "The tokenizer org/none",
    ]
    assert not [line for line in found if "\n" in line]


@pytest.mark.hub
@pytest.mark.parametrize("kind", ["completions", "chat"])
def test_the_served_name_stands_for_a_tokenizer_that_nobody_named(hub, kind):
    assert "EVAL_TOKENIZER" in of({"HF_ENDPOINT": hub}, model="run-a", kind=kind)[0]


async def test_a_gated_dataset_needs_the_token():
    async with FakeServer(Behaviour(When(path="/org/gated"), status=200, body={"gated": "auto"})) as hub:
        environ = {"HF_ENDPOINT": hub.root}
        (line,) = await asyncio.to_thread(of, environ, datasets=["org/gated"], tokenizer="")
        with_token = await asyncio.to_thread(of, environ | {"HF_TOKEN": TOKEN}, datasets=["org/gated"], tokenizer="")
    assert "pass HF_TOKEN to the job" in line and with_token == []


@pytest.mark.parametrize("word", ["1", "True", "YES", "on"])
def test_offline_what_the_cache_lacks_is_named(tmp_path, word):
    environ = {"HF_HUB_OFFLINE": word, "HF_HOME": str(tmp_path)}
    (line,) = of(environ, datasets=["openai/gsm8k@v2"], tokenizer="")
    assert "dataset openai/gsm8k@v2" in line and "HF_HUB_OFFLINE is set" in line


@pytest.mark.parametrize("repository", ["openai/gsm8k", "gsm8k"])
@pytest.mark.parametrize("leave", [snapshot, prepared])
def test_what_the_cache_has_needs_no_hub(tmp_path, repository, leave):
    assert of({"HF_ENDPOINT": NOWHERE} | leave(tmp_path, repository), datasets=["openai/gsm8k"], tokenizer="") == []


def test_a_hub_out_of_reach_is_asked_once():
    found = of({"HF_ENDPOINT": NOWHERE}, datasets=["org/a", "org/b"], tokenizer="org/c")
    assert len(found) == 3 and all("cannot be reached" in line for line in found)


def test_a_path_that_the_job_does_not_see_is_named(tmp_path):
    assert of({}, tokenizer=str(tmp_path)) == []
    assert "no such path in the job" in of({}, tokenizer="/mnt/nowhere")[0]


@pytest.mark.skipif(shutil.which("unshare") is None or os.geteuid() != 0, reason="needs a network namespace of its own")
def test_on_a_node_without_any_route_it_is_said_within_seconds():
    code = (
        "from tests.harness.direct.test_hub import of\n"
        "print(*of({'HOME': '/nowhere'}, datasets=['openai/gsm8k'], tokenizer='org/tok'), sep='\\n')"
    )
    began = time.monotonic()
    done = subprocess.run(["unshare", "-n", sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert time.monotonic() - began < 30  # of which Python's start is the most
    assert "dataset openai/gsm8k" in done.stdout and "tokenizer org/tok" in done.stdout
