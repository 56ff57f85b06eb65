import base64
import json
import os
from pathlib import Path

import pytest

from nemotron.errors import UsageError
from nemotron.images.credentials import Credential, Keyring
from nemotron.images.reference import parse

IMAGE = parse("nvcr.io/nvidia/eval-factory/tool:1")
ENCODED = base64.b64encode(b"$oauthtoken:sk-not-a-real-key").decode()


@pytest.fixture
def home(tmp_path):
    (tmp_path / ".docker").mkdir()
    return tmp_path


def keyring(home: Path, config: object, **environ: str) -> Keyring:
    (home / ".docker/config.json").write_text(json.dumps(config))
    return Keyring.load({"HOME": str(home), "PATH": f"{home}{os.pathsep}{os.environ['PATH']}", **environ})


def helper(home: Path, name: str, answer: str, exit_code: int = 0) -> None:
    """A credential helper that writes down what it was asked."""
    path = home / f"docker-credential-{name}"
    path.write_text(f"#!/bin/sh\necho $1 >>{home}/asked\ncat >>{home}/asked\necho '{answer}'\nexit {exit_code}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("name", ["nvcr.io", "https://nvcr.io", "nvcr.io/nvidia", "nvcr.io/nvidia/eval-factory/tool"])
def test_reads_what_docker_and_podman_login_leave(home, name):
    found = keyring(home, {"auths": {name: {"auth": ENCODED}}}).credential_for(IMAGE)
    assert found == Credential("$oauthtoken", "sk-not-a-real-key")


def test_the_default_registry_is_found_under_its_old_name(home):
    content = {"auths": {"https://index.docker.io/v1/": {"auth": ENCODED}}}
    assert keyring(home, content).credential_for(parse("someone/thing"))


def test_the_narrowest_login_wins(home):
    content = {"auths": {"nvcr.io": {"username": "wide"}, "nvcr.io/nvidia": {"username": "narrow"}}}
    assert keyring(home, content).credential_for(IMAGE).username == "narrow"


def test_asks_the_helper_of_the_registry(home):
    helper(home, "vault", '{"ServerURL": "nvcr.io", "Username": "ann", "Secret": "sk-not-a-real-key"}')
    found = keyring(home, {"credHelpers": {"nvcr.io": "vault"}}).credential_for(IMAGE)
    assert found == Credential("ann", "sk-not-a-real-key")
    assert (home / "asked").read_text() == "get\nnvcr.io"


def test_asks_the_helper_for_all_registries(home):
    helper(home, "store", '{"Username": "<token>", "Secret": "sk-not-a-real-key"}')
    found = keyring(home, {"credsStore": "store", "auths": {"nvcr.io": {}}}).credential_for(IMAGE)
    assert found == Credential(identity_token="sk-not-a-real-key")


def test_a_helper_that_knows_no_login_leaves_one_anonymous(home):
    helper(home, "store", "credentials not found in native keychain", exit_code=1)
    assert keyring(home, {"credsStore": "store"}).credential_for(IMAGE) is None


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"credHelpers": {"nvcr.io": "gone"}}, "docker-credential-gone"),
        ({"auths": {"nvcr.io": {"auth": "%%%"}}}, "log in anew"),
        (["no object"], "config.json"),
    ],
)
def test_a_login_that_cannot_be_used_is_named(home, config, named):
    with pytest.raises(UsageError, match=named):
        keyring(home, config).credential_for(IMAGE)


def test_a_helper_that_answers_nonsense_is_named_without_what_it_said(home):
    helper(home, "vault", "sk-not-a-real-key")
    with pytest.raises(UsageError, match="docker-credential-vault") as refusal:
        keyring(home, {"credHelpers": {"nvcr.io": "vault"}}).credential_for(IMAGE)
    assert "sk-not-a-real-key" not in str(refusal.value)


def test_an_api_key_of_ngc_is_enough_for_its_registry(home):
    found = keyring(home, {}, NGC_API_KEY="sk-not-a-real-key")
    assert found.credential_for(IMAGE) == Credential("$oauthtoken", "sk-not-a-real-key")
    assert found.credential_for(parse("other.example/tool:1")) is None


def test_a_config_elsewhere_is_named_by_its_variable(home, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/config.json").write_text(json.dumps({"auths": {"nvcr.io": {"username": "ann"}}}))
    found = keyring(home, {}, DOCKER_CONFIG=str(tmp_path / "elsewhere")).credential_for(IMAGE)
    assert found.username == "ann"


def test_no_secret_shows_in_a_printed_value(home):
    made = keyring(home, {"auths": {"nvcr.io": {"auth": ENCODED}}}, NGC_API_KEY="sk-not-a-real-key")
    assert "sk-not-a-real-key" not in repr(made) + repr(made.credential_for(IMAGE)) and ENCODED not in repr(made)
