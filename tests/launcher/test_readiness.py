"""What is settled between compiling a job and starting it."""

import asyncio

import pytest

from nemotron.errors import UsageError
from nemotron.readiness import all_made_ready, made_ready
from tests.fakes.openai_server import FakeServer
from tests.fakes.registry import FakeRegistry, layer
from tests.launcher.world import DOCKER, USER, compiled


@pytest.fixture
def environ(tmp_path):
    return USER | {"XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}


def ready(image: str, environ, *overrides: str):
    warnings: list[str] = []
    job = compiled(f"harness_image='{image}'", "preflight=false", *overrides, profile=DOCKER, **environ)
    return made_ready(job, warnings.append).job, warnings


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
        job = compiled("output_dir=/tmp", suite="quickstart", **environ | asked)
        with pytest.raises(UsageError) as refused:
            await asyncio.to_thread(made_ready, job, print)
    finding, advice = str(refused.value).splitlines()
    assert "'fake-model'" in finding and "preflight=false" in advice


def test_jobs_that_share_an_image_ask_for_it_once(environ):
    with FakeRegistry() as registry:
        registry.push("team/harness", "1.0", layers=[layer({"a": "b"})])
        one, *others = [
            compiled(
                f"harness_image={registry.host}/team/harness:1.0",
                f"target.api_endpoint.model_id=m{number}",
                "output_dir=/tmp",
                profile=DOCKER,
                **environ | {"EVAL_ENDPOINT_URL": "http://127.0.0.1:9/v1/completions"},
            )
            for number in range(5)
        ]
        made_ready(one, print)
        alone = len(registry.requests)
        ready = all_made_ready([one, *others], print)
    assert len({job.job.image for job in ready}) == 1 and len(registry.requests) <= 2 * alone


def test_one_job_that_would_fail_leaves_the_others_alone(environ):
    with FakeRegistry() as registry:
        registry.push("team/harness", "1.0", layers=[layer({"a": "b"})])
        images = [f"{registry.host}/team/{name}:1.0" for name in ("harness", "missing", "harness")]
        jobs = [compiled(f"harness_image={i}", "preflight=false", profile=DOCKER, **environ) for i in images]
        first, refused, last = all_made_ready(jobs, print)
    assert first.job.image == last.job.image and "team/missing" in str(refused)


def test_what_could_not_be_looked_at_is_said_once_for_all(environ, tmp_path):
    unreachable = {"EVAL_ENDPOINT_URL": "http://127.0.0.1:9/v1/completions", "EVAL_RESULTS_DIR": str(tmp_path)}
    warnings: list[str] = []
    jobs = [compiled(f"run.env.env_vars.A={n}", suite="quickstart", **environ | unreachable) for n in range(3)]
    assert all_made_ready(jobs, warnings.append) == jobs
    assert len([line for line in warnings if "127.0.0.1:9" in line]) == 1
