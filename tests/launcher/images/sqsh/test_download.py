"""Layers arrive whole, or not at all, whatever the registry does."""

import os
import threading
from dataclasses import replace

import pytest

from nemotron.images.authorization import NotAuthorized
from nemotron.images.manifests import RegistryUnreachable
from nemotron.images.reference import parse
from nemotron.images.sqsh.download import ATTEMPTS, download, path_of
from tests.launcher.images.conftest import harness

BLOBS = [os.urandom(size) for size in (300_000, 1, 5_000_000)]


@pytest.fixture
def pull(fake, client, tmp_path):
    """Pulls an image from a registry that behaves like this; gives the registry and what arrived."""

    def pulled(blobs=BLOBS, use=lambda layer, path: None, **rules):
        registry = fake(**rules)
        registry.push("team/harness", "1.0", layers=blobs)
        asked = client()
        manifest = asked.manifest(harness(registry))
        download(asked, harness(registry), manifest.layers, tmp_path, use)
        return registry, [path_of(layer, tmp_path).read_bytes() for layer in manifest.layers]

    return pulled


def test_every_layer_arrives_and_is_asked_for_once(pull):
    registry, files = pull()
    assert files == BLOBS
    assert registry.count("GET", "/blobs/") == len(BLOBS)


def test_a_layer_that_comes_twice_is_asked_for_once(pull):
    registry, files = pull([b"same", b"other", b"same"])
    assert files == [b"same", b"other", b"same"]
    assert registry.count("GET", "/blobs/") == 2


def test_layers_come_side_by_side(pull):
    together = threading.Barrier(3)
    pull(use=lambda layer, path: together.wait(180))


def test_goes_on_where_the_connection_broke(pull):
    registry, files = pull(breaks_after=1_000_000)
    assert files == BLOBS
    assert registry.bytes_sent < sum(map(len, BLOBS)) * 1.2


def test_gives_up_when_each_new_connection_gets_no_further(pull):
    with pytest.raises(RegistryUnreachable, match="broke off"):
        pull(breaks_after=1_000_000, ignores_range=True)


def test_gives_up_on_a_connection_that_brings_nothing(pull, clock):
    with pytest.raises(RegistryUnreachable, match="broke off"):
        pull([b"x" * 1000], breaks_after=0)
    assert len(clock.slept) == ATTEMPTS - 1 and clock.slept == sorted(clock.slept)


def test_a_damaged_layer_is_fetched_once_more(pull):
    registry, files = pull([b"y" * 1000], damaged_blobs=1)
    assert files == [b"y" * 1000] and registry.count("GET", "/blobs/") == 2


def test_a_layer_that_stays_damaged_is_refused_and_removed(pull, tmp_path):
    with pytest.raises(RegistryUnreachable, match="does not arrive as its digest says"):
        pull([b"y" * 1000], damaged_blobs=9)
    assert not list(tmp_path.iterdir())


def test_waits_as_long_as_a_busy_registry_wishes(pull, clock):
    _, files = pull([b"z"], busy_after=2, busy_for=2, retry_after="7")
    assert files == [b"z"] and clock.slept.count(7.0) == 2


def test_a_login_goes_along(pull):
    _, files = pull(auth="bearer", token_uses=1)
    assert files == BLOBS


def test_a_refusal_stops_the_other_layers(fake, client, tmp_path):
    registry = fake()
    registry.push("team/harness", "1.0", layers=BLOBS)
    asked = client()
    manifest = asked.manifest(harness(registry))
    registry.rules.auth, registry.rules.login = "basic", ("me", "secret")
    with pytest.raises(NotAuthorized):
        download(asked, harness(registry), manifest.layers, tmp_path)


def test_what_fails_in_its_use_is_what_is_told(pull):
    def fail(layer, path):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        pull(use=fail)


def test_a_digest_that_is_no_digest_is_no_file_name(fake, client, tmp_path):
    registry = fake()
    registry.push("team/harness", "1.0", layers=[b"x"])
    asked = client()
    (layer,) = asked.manifest(parse(f"{registry.host}/team/harness:1.0")).layers
    with pytest.raises(RegistryUnreachable, match="no sha256"):
        download(asked, harness(registry), [replace(layer, digest="sha256:../../evil")], tmp_path)


def test_a_registry_that_sends_all_when_asked_for_the_rest_is_understood(fake, client):
    registry = fake(ignores_range=True)
    registry.push("team/harness", "1.0", layers=[BLOBS[0]])
    asked = client()
    (layer,) = asked.manifest(harness(registry)).layers
    with asked.layer(harness(registry), layer, start=299_000) as chunks:
        assert b"".join(chunks) == BLOBS[0][299_000:]
