"""The examination of profiles that run on this machine: its environment, its container engine."""

import json

import pytest

from tests.conftest import _testbed
from tests.launcher.doctor.conftest import TOKEN, bad, line_of, skipped, write_profile


@pytest.fixture
def local(user, server):
    """Runs the doctor for a local profile."""
    server.control(api_key=TOKEN, model="my-model")
    python = str(user.folder / "harness/bin/python")
    user.environ |= {"EVAL_ENDPOINT_URL": f"{server.url}/completions", "ENDPOINT_TOKEN": TOKEN}

    def run(**profile):
        write_profile(user, "here", {"executor": "local", "python": python, **profile})
        done = user("doctor", "-b", "here", "-c", "quickstart", "--json")
        return json.loads(done.stdout)["findings"], done.returncode

    return run


def test_an_environment_with_a_harness_will_do(local):
    findings, code = local()
    assert (bad(findings), code) == ({}, 0)
    assert [one["check"] for one in findings] == ["suite", "python", "harness", "storage", "endpoint", "hub"]


def test_an_interpreter_that_is_none_leaves_nothing_to_look_at(local):
    findings, code = local(python="/none/python")
    assert bad(findings) == {"python": "fail"} and code == 1
    assert skipped(findings) == ["harness", "storage", "endpoint", "hub"]


def test_an_environment_without_a_harness_is_told_which_one_has_it(local, user):
    (user.folder / "harness/bin/nemo-evaluator").unlink()
    assert "set python in the profile" in line_of(local()[0], "harness")


def test_an_engine_that_does_not_answer_is_a_finding(user, tmp_path):
    write_profile(user, "engine", {"executor": "docker", "docker_host": f"unix://{tmp_path}/none.sock"})
    done = user("doctor", "-b", "engine", "-c", "quickstart", "--json")
    findings = json.loads(done.stdout)["findings"]
    assert bad(findings) == {"engine": "fail"} and done.returncode == 1
    assert skipped(findings) == ["container", "container storage", "endpoint", "hub"]


def test_a_container_of_the_image_tells_what_it_reaches(user, server):
    engine, image = _testbed("NEL_TEST_ENGINE", "podman"), _testbed("NEL_TEST_IMAGE", "image")
    server.control(api_key=TOKEN, model="my-model")
    write_profile(user, "engine", {"executor": "docker", "docker_host": engine})
    endpoint = {"EVAL_ENDPOINT_URL": f"{server.url}/completions", "ENDPOINT_TOKEN": TOKEN}
    done = user("doctor", "-b", "engine", "-c", "quickstart", "--json", **endpoint, EVAL_HARNESS_IMAGE=image)
    findings = json.loads(done.stdout)["findings"]
    assert (bad(findings), done.returncode) == ({}, 0)
    checks = ["suite", "engine", "storage", "container", "container storage", "endpoint", "hub"]
    assert [one["check"] for one in findings] == checks and TOKEN not in done.stdout
    assert not user.results.exists()


def test_other_backends_say_so(user):
    profile = {"executor": "lepton", "resource_shape": "cpu.large", "secret_vars": {"ENDPOINT_TOKEN": "t"}}
    write_profile(user, "cloud", profile)
    done = user("doctor", "-b", "cluster")
    assert done.returncode == 2
    done = user("doctor", "-b", "cloud")
    assert done.returncode == 2 and "local, docker and slurm" in done.stderr
