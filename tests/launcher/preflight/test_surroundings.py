"""Results storage, the image's tasks and the tokenizer."""

import asyncio
from pathlib import Path

import pytest

from nemotron.images.registry import Registry, RegistrySettings
from nemotron.preflight import check_image, check_storage, check_tokenizers, tokenizers_of
from tests.fakes.openai_server import Behaviour, FakeServer, When
from tests.fakes.registry import FakeRegistry, layer
from tests.launcher.images.test_tasks import DEFINITION, FRAMEWORK
from tests.launcher.preflight.conftest import TOKEN, plan_of

HUGGING_FACE = {"tokenizer_backend": "huggingface"}


def test_storage_that_can_be_written_is_left_as_it_was(tmp_path):
    assert not list(check_storage(tmp_path / "a/b/results"))
    assert not list(tmp_path.iterdir())


def test_storage_that_cannot_be_written_stops():
    (finding,) = check_storage(Path("/proc/nowhere/results"))
    assert "/proc cannot be written" in str(finding) and "EVAL_RESULTS_DIR" in str(finding)


async def test_storage_of_another_host_is_not_judged_from_here(look):
    findings = await look("http://127.0.0.1:9/v1", is_remote=True)
    assert ["cannot be reached" in str(finding) for finding in findings] == [True]


# The image


@pytest.fixture
def image():
    with FakeRegistry() as registry:
        registry.push("team/tasks", "1", layers=[layer({FRAMEWORK: DEFINITION})])
        registry.push("team/other", "1", layers=[layer({"bin/sh": ""})])
        yield f"{registry.host}/team/tasks:1"


def of_image(image: str, *tasks: str, kind: str = "completions") -> list:
    with Registry(RegistrySettings()) as registry:
        return list(check_image(plan_of("http://127.0.0.1:9/v1", tasks, kind, image=image), registry))


@pytest.mark.parametrize("task", ["arithmetic", "words", "demo-harness.words", "demo-harness.undeclared"])
def test_a_task_of_the_image_passes(image, task):
    assert not of_image(image, task)


def test_a_task_that_the_image_lacks_is_answered_with_the_near_one(image):
    (finding,) = of_image(image, "arithmetics", "words")
    assert finding.severity == "stop" and "the nearest is 'arithmetic'" in str(finding) and image in str(finding)


def test_a_task_for_another_type_of_endpoint_stops(image):
    (finding,) = of_image(image, "words", "arithmetic", kind="chat")
    assert "'words' is for endpoints of type completions, this one is chat" in str(finding)


def test_a_list_that_cannot_be_read_is_a_note(image):
    (finding,) = of_image(image.replace("team/tasks", "team/gone"), "words")
    assert finding.severity == "note" and "nemo-evaluator ls" in str(finding)


def test_an_image_that_keeps_its_tasks_elsewhere_is_not_judged(image):
    assert not of_image(image.replace("team/tasks", "team/other"), "words")


@pytest.mark.parametrize("image", [None, "/mnt/images/harness.sqsh"])
def test_without_an_image_in_a_registry_nobody_is_asked(image):
    assert not of_image(image, "words")


# The tokenizer


def of_tokenizer(environ=None, model="fake-model", **extra) -> list:
    plan = plan_of("http://127.0.0.1:9/v1", ["gsm8k"], model=model, extra=HUGGING_FACE | extra)
    return list(check_tokenizers(plan, environ or {}))


@pytest.mark.hub
def test_a_tokenizer_on_the_hub_passes(hub):
    assert not of_tokenizer({"HF_ENDPOINT": hub}, tokenizer="example/small-bpe")
    assert not of_tokenizer({"HF_ENDPOINT": hub}, model="example/small-bpe")


@pytest.mark.hub
def test_a_tokenizer_that_the_hub_lacks_is_named(hub):
    (finding,) = of_tokenizer({"HF_ENDPOINT": hub}, tokenizer="example/no-such")
    assert finding.severity == "stop" and "no tokenizer 'example/no-such'" in str(finding)


@pytest.mark.hub
def test_an_alias_without_a_tokenizer_asks_for_one(hub):
    (finding,) = of_tokenizer({"HF_ENDPOINT": hub}, model="run-a")
    assert "'run-a' is not on the hub" in str(finding) and "EVAL_TOKENIZER" in str(finding)


async def test_a_gated_tokenizer_asks_for_the_token():
    async with FakeServer(Behaviour(When(path="/gated"), status=401, body=f"not {TOKEN}")) as hub:
        (finding,) = await asyncio.to_thread(
            of_tokenizer, {"HF_ENDPOINT": hub.root, "HF_TOKEN": TOKEN}, tokenizer="org/gated"
        )
    assert "forward HF_TOKEN" in str(finding) and TOKEN not in str(finding)


def test_a_hub_that_cannot_be_reached_is_a_note():
    (finding,) = of_tokenizer({"HF_ENDPOINT": "http://127.0.0.1:9"}, tokenizer="org/name")
    assert finding.severity == "note" and "'org/name'" in str(finding)


def test_offline_nobody_is_asked():
    assert not of_tokenizer({"HF_HUB_OFFLINE": "1", "HF_ENDPOINT": "http://127.0.0.1:9"}, tokenizer="org/name")


def test_a_path_or_another_backend_needs_no_hub():
    assert tokenizers_of(plan_of("u", ["a"], extra=HUGGING_FACE | {"tokenizer": "/mnt/tokenizer"})) == set()
    assert tokenizers_of(plan_of("u", ["a"], extra={"tokenizer_backend": "tiktoken"})) == set()
    assert tokenizers_of(plan_of("u", ["a"], "chat", extra=HUGGING_FACE)) == set()
