"""Results storage and the image's tasks."""

from pathlib import Path

import pytest

from nemotron.images.registry import Registry, RegistrySettings
from nemotron.preflight import check_image, check_storage
from tests.fakes.registry import FakeRegistry, layer
from tests.launcher.images.test_tasks import DEFINITION, FRAMEWORK
from tests.launcher.preflight.conftest import plan_of

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
