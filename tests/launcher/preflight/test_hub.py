"""Datasets and tokenizers, looked for before the job is submitted."""

import asyncio
import time

import pytest

from nemotron.hub import datasets_of, is_offline
from nemotron.preflight.hub import check_hub
from tests.fakes.openai_server import Behaviour, FakeServer, When
from tests.hub_cache import COMMIT, prepared, snapshot
from tests.launcher.preflight.conftest import TOKEN, plan_of

HUGGING_FACE = {"tokenizer_backend": "huggingface"}
NOWHERE = "http://127.0.0.1:9"


def of(environ=None, *, sees_cache=True, kind="completions", model="fake-model", datasets=(), **extra) -> list:
    used = HUGGING_FACE | extra if extra or not datasets else {}
    plan = plan_of("http://127.0.0.1:9/v1", ["gsm8k"], kind, model=model, extra=used, datasets=datasets)
    return list(check_hub(plan, environ or {}, sees_cache=sees_cache))


@pytest.mark.hub
def test_what_the_hub_has_passes(hub):
    assert not of({"HF_ENDPOINT": hub}, tokenizer="example/small-bpe")
    assert not of({"HF_ENDPOINT": hub}, model="example/small-bpe")
    assert not of({"HF_ENDPOINT": hub}, datasets=["openai/gsm8k", "gsm8k", "openai/gsm8k@main"])


@pytest.mark.hub
@pytest.mark.parametrize("kind", ["completions", "chat"])
def test_a_tokenizer_that_the_hub_lacks_is_named(hub, kind):
    (finding,) = of({"HF_ENDPOINT": hub}, kind=kind, tokenizer="example/no-such")
    assert finding.severity == "stop" and "no tokenizer 'example/no-such'" in str(finding)


@pytest.mark.hub
@pytest.mark.parametrize("kind", ["completions", "chat"])
def test_an_alias_without_a_tokenizer_asks_for_one(hub, kind):
    (finding,) = of({"HF_ENDPOINT": hub}, kind=kind, model="run-a")
    assert "'run-a' is not on the hub" in str(finding) and "EVAL_TOKENIZER" in str(finding)


@pytest.mark.hub
@pytest.mark.parametrize("token", [f"{TOKEN}\nmore", f"{TOKEN}\u00fc"])
def test_a_token_that_no_request_can_carry_is_not_shown(hub, token):
    (finding,) = of({"HF_ENDPOINT": hub, "HF_TOKEN": token}, datasets=["openai/gsm8k"])
    assert "no HTTP header can carry" in str(finding) and TOKEN not in str(finding)


@pytest.mark.hub
def test_a_dataset_that_the_hub_lacks_is_named_with_its_task(hub):
    (finding,) = of({"HF_ENDPOINT": hub}, datasets=["openai/gsm9k"])
    assert finding.severity == "stop"
    assert "no dataset 'openai/gsm9k'" in str(finding) and "gsm8k would fail" in str(finding)


async def test_a_revision_that_the_hub_lacks_is_named():
    async with FakeServer(Behaviour(When(path="/revision/v9"), status=404)) as hub:
        (finding,) = await asyncio.to_thread(of, {"HF_ENDPOINT": hub.root}, datasets=["org/data@v9"])
    assert "no dataset 'org/data@v9'" in str(finding)


async def test_a_gated_repository_asks_for_the_token():
    async with FakeServer(Behaviour(When(path="/gated"), status=401, body=f"not {TOKEN}")) as hub:
        environ = {"HF_ENDPOINT": hub.root, "HF_TOKEN": TOKEN}
        (finding,) = await asyncio.to_thread(of, environ, tokenizer="org/gated")
    assert "export HF_TOKEN" in str(finding) and TOKEN not in str(finding)


async def test_a_dataset_behind_terms_needs_a_token_of_somebody_who_accepted_them():
    shown = Behaviour(When(path="/api/datasets/org/gated"), body={"id": "org/gated", "gated": "manual"})
    refused = Behaviour(When(path="/auth-check"), status=403, body="no")
    async with FakeServer(shown, refused) as hub:
        environ = {"HF_ENDPOINT": hub.root}
        (without,) = await asyncio.to_thread(of, environ, datasets=["org/gated"])
        (stranger,) = await asyncio.to_thread(of, environ | {"HF_TOKEN": TOKEN}, datasets=["org/gated"])
    async with FakeServer(shown) as hub:
        environ = {"HF_ENDPOINT": hub.root, "HF_TOKEN": TOKEN}
        accepted = await asyncio.to_thread(of, environ, datasets=["org/gated"])
    assert "accepted its terms" in str(without) and "HF_TOKEN" in str(without)
    assert "account of HF_TOKEN may not read" in str(stranger)
    assert accepted == []


def test_a_hub_that_cannot_be_reached_is_a_note():
    (finding,) = of({"HF_ENDPOINT": NOWHERE}, tokenizer="org/name")
    assert finding.severity == "note" and "'org/name'" in str(finding)


@pytest.mark.parametrize("value", ["1", "true", "TRUE", "yes", "on"])
def test_offline_what_the_cache_lacks_stops_at_once(tmp_path, value):
    environ = {"HF_HUB_OFFLINE": value, "HF_ENDPOINT": NOWHERE, "HF_HOME": str(tmp_path)}
    began = time.monotonic()
    findings = of(environ, tokenizer="org/tok", datasets=["openai/gsm8k@v2"])
    assert time.monotonic() - began < 5
    assert [finding.severity for finding in findings] == ["stop", "stop"]
    assert f"dataset openai/gsm8k@v2 is not in {tmp_path}" in str(findings[0])
    assert "tokenizer org/tok" in str(findings[1])


@pytest.mark.parametrize("value", ["0", "false", "", "off"])
def test_other_words_do_not_mean_offline(value):
    assert not is_offline({"HF_HUB_OFFLINE": value})


@pytest.mark.parametrize("repository", ["openai/gsm8k", "gsm8k"])
@pytest.mark.parametrize("leave", [snapshot, prepared])
def test_offline_what_the_cache_has_passes(tmp_path, repository, leave):
    assert not of({"HF_HUB_OFFLINE": "1"} | leave(tmp_path, repository), datasets=["openai/gsm8k"])


def test_offline_another_revision_is_not_the_pinned_one(tmp_path):
    environ = {"HF_HUB_OFFLINE": "1"} | snapshot(tmp_path, "openai/gsm8k", revision="v1")
    assert not of(environ, datasets=["openai/gsm8k@v1"])
    assert not of(environ, datasets=[f"openai/gsm8k@{COMMIT}"])
    assert of(environ, datasets=["openai/gsm8k@v2"])


def test_what_is_cached_is_not_asked_for(tmp_path):
    assert not of({"HF_ENDPOINT": NOWHERE} | snapshot(tmp_path, "org/tok", "models"), tokenizer="org/tok")


def test_the_cache_of_another_machine_is_not_judged_from_here(tmp_path):
    assert not of({"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}, sees_cache=False, tokenizer="org/tok")


def test_a_tokenizer_by_its_path_must_be_there(tmp_path):
    assert not of(tokenizer=str(tmp_path))
    assert not of(tokenizer="/mnt/cluster/tok", sees_cache=False)
    (finding,) = of(tokenizer="/mnt/cluster/tok")
    assert "no tokenizer at /mnt/cluster/tok" in str(finding)


def test_another_backend_needs_no_hub():
    assert not of({"HF_ENDPOINT": NOWHERE}, tokenizer="cl100k_base", tokenizer_backend="tiktoken")


@pytest.mark.parametrize(
    ("task", "datasets"),
    [
        ("adlr_arc_challenge_llama_25_shot", ("allenai/ai2_arc",)),
        ("lm-evaluation-harness.gsm8k_cot_instruct", ("openai/gsm8k",)),
        ("milu_Hindi", ("ai4bharat/MILU",)),
        ("hellaswag_multilingual", ()),
        ("gsm8k_platinum", ()),
        ("anything", ()),
    ],
)
def test_the_dataset_of_a_task_is_known_or_left_open(task, datasets):
    assert datasets_of(task) == datasets
