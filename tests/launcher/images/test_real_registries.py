"""Against the registries and the harness image of the testbed."""

import json
import subprocess

import pytest

from nemotron.images.authorization import NotAuthorized
from nemotron.images.credentials import Keyring
from nemotron.images.reference import parse
from nemotron.images.tasks import read_tasks
from tests.conftest import _testbed

LOGIN = {"username": "tester", "password": "not-a-real-password"}


@pytest.fixture(scope="module")
def image():
    return parse(_testbed("NEL_TEST_IMAGE", "image"))


@pytest.fixture(scope="module")
def behind_tokens(image):
    """The same image at the registry that wants Bearer tokens."""
    return parse(str(image).replace(image.registry, _testbed("NEL_TEST_TOKEN_REGISTRY", "registry")))


def test_a_digest_is_the_one_that_other_tools_see(client, image):
    inspected = subprocess.run(
        ["skopeo", "inspect", "--tls-verify=false", f"docker://{image}"], capture_output=True, text=True, check=True
    )
    assert client().resolve(image).digest == json.loads(inspected.stdout)["Digest"]


def test_anybody_gets_a_real_token_for_what_is_public(client, image, behind_tokens):
    assert client().resolve(behind_tokens).digest == client().resolve(image).digest


def test_a_login_opens_what_is_not_public(client, behind_tokens):
    private = parse(f"{behind_tokens.registry}/base:bookworm")
    with pytest.raises(NotAuthorized, match=f"docker login {behind_tokens.registry}"):
        client().resolve(private)
    keyring = Keyring(({"auths": {private.registry: LOGIN}},))
    assert client(keyring=keyring).resolve(private).size > 10_000_000


def test_a_wrong_login_is_refused_by_the_token_service(client, behind_tokens):
    keyring = Keyring(({"auths": {behind_tokens.registry: LOGIN | {"password": "wrong"}}},))
    with pytest.raises(NotAuthorized, match="does not take the login"):
        client(keyring=keyring).resolve(behind_tokens)


def test_our_own_benchmarks_are_among_the_tasks_of_the_image(client, image):
    listed = read_tasks(client(), image, wanted=["tiny_arithmetic", "gsm8k"])
    assert listed.find("tiny_arithmetic").endpoint_types == ("chat", "completions")
    assert listed.find("gsm8k").framework != listed.find("nemo-evaluator.gsm8k").framework


def test_lists_the_tasks_of_the_harness_image_without_its_base(client, behind_tokens):
    listed = read_tasks(client(), behind_tokens, wanted=["hellaswag"])
    assert len(listed.tasks) > 100 and listed.layers_read < listed.layers_total
    assert listed.find("adlr_arc_challenge_llama_25_shot").endpoint_types == ("completions",)
    assert listed.find("gsm8k_cot_instruct").endpoint_types == ("chat",)
