"""What is settled between compiling a job and starting it."""

import asyncio

import pytest

from nemotron.errors import UsageError
from nemotron.readiness import made_ready
from tests.fakes.openai_server import FakeServer
from tests.fakes.registry import FakeRegistry, layer
from tests.launcher.world import DOCKER, USER, compiled


@pytest.fixture
def environ(tmp_path):
    return USER | {"XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}


def ready(image: str, environ, *overrides: str):
    warnings: list[str] = []
    job = compiled(f"harness_image='{image}'", "preflight=false", *overrides, profile=DOCKER).job
    return made_ready(job, environ, warnings.append, is_remote=False), warnings


def test_a_tag_becomes_a_digest_and_both_are_recorded(environ):
    with FakeRegistry() as registry:
        registry.push("team/harness", "1.0", layers=[layer({"a": "b"})])
        job, warnings = ready(f"{registry.host}/team/harness:1.0", environ)
    harness = job.plan["harness"]
    assert job.image == harness["image"] and "@sha256:" in harness["image"] and harness["image_pinned_by_digest"]
    assert harness["requested_image"].endswith("/team/harness:1.0") and warnings == []


def test_a_pinned_image_asks_nobody(environ):
    image = "127.0.0.1:1/team/harness@sha256:" + "0" * 64
    job, warnings = ready(image, environ)
    assert job.image == image and job.plan["harness"]["image_pinned_by_digest"] and warnings == []


def test_a_registry_that_cannot_be_reached_is_a_warning_and_never_a_silent_tag(environ):
    job, (warning,) = ready("127.0.0.1:1/team/harness:1.0", environ)
    assert job.image == "127.0.0.1:1/team/harness:1.0" and not job.plan["harness"]["image_pinned_by_digest"]
    assert "cannot be cited" in warning


def test_an_image_that_is_not_there_is_refused(environ):
    with FakeRegistry() as registry, pytest.raises(UsageError, match="team/harness"):
        ready(f"{registry.host}/team/harness:1.0", environ)


async def test_findings_are_told_a_line_each_before_anything_is_submitted(environ):
    async with FakeServer() as server:
        asked = {"EVAL_ENDPOINT_URL": f"{server.url}/completions", "EVAL_MODEL_HANDLE": "fake-modell"}
        job = compiled("output_dir=/tmp", suite="quickstart", **asked).job
        with pytest.raises(UsageError) as refused:
            await asyncio.to_thread(made_ready, job, environ, print, is_remote=False)
    finding, advice = str(refused.value).splitlines()
    assert "'fake-model'" in finding and "preflight=false" in advice
