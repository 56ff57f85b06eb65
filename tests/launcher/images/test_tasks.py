import gzip

import pytest
import zstandard

from nemotron.errors import LauncherError
from nemotron.images.manifests import RegistryUnreachable
from nemotron.images.reference import parse
from nemotron.images.tasks import read_tasks
from tests.fakes.registry import digest, layer

SITE = "opt/venv/lib/python3.11/site-packages"
FRAMEWORK = f"{SITE}/core_evals/demo/framework.yml"
DEFINITION = """
framework: {name: demo-harness, pkg_name: demo}
defaults:
  command: demo --task {{config.params.task}}
  config: {params: {limit_samples: null, parallelism: 10, extra: {tokenizer: null, num_fewshot: 0}}}
evaluations:
  - name: Arithmetic
    defaults:
      config: {type: arithmetic, supported_endpoint_types: [chat, completions],
               params: {task: sums, parallelism: null, extra: {num_fewshot: 5}}}
  - name: Words
    defaults: {config: {type: words, supported_endpoint_types: [completions]}}
"""
OTHER = DEFINITION.replace("demo-harness", "other").replace("arithmetic", "chess").replace("words", "go")


@pytest.fixture
def push(fake):
    """Pushes an image of these layers, the base first; its name."""
    registry = fake()

    def of(*layers: bytes):
        registry.push("team/tasks", "1", layers=layers)
        return parse(f"{registry.host}/team/tasks:1")

    of.registry = registry
    return of


def test_reads_tasks_with_their_endpoint_types_and_merged_defaults(client, push):
    listed = read_tasks(client(), push(layer({FRAMEWORK: DEFINITION})))
    assert listed.names == ("arithmetic", "words")
    arithmetic = listed.find("arithmetic")
    assert arithmetic.endpoint_types == ("chat", "completions")
    assert arithmetic.defaults["parallelism"] == 10 and arithmetic.defaults["task"] == "sums"
    assert arithmetic.defaults["extra"] == {"tokenizer": None, "num_fewshot": 5}


def gzip_of_two_members(data: bytes) -> bytes:
    return gzip.compress(data[:1000]) + gzip.compress(data[1000:])


def zstd_of_two_frames(data: bytes) -> bytes:
    return zstandard.compress(data[:1000]) + zstandard.compress(data[1000:])


@pytest.mark.parametrize(
    "compress", [gzip.compress, zstandard.compress, bytes, gzip_of_two_members, zstd_of_two_frames]
)
def test_reads_every_kind_of_layer(client, push, compress):
    assert read_tasks(client(), push(layer({FRAMEWORK: DEFINITION}, compress))).names == ("arithmetic", "words")


def test_downloads_the_newest_layers_only_until_one_has_tasks(client, push):
    base, wheels, settings = layer({"bin/sh": "x"}), layer({FRAMEWORK: DEFINITION}), layer({"etc/motd": "hi"})
    listed = read_tasks(client(), push(base, wheels, settings))
    assert push.registry.blob_bytes_asked() == [digest(settings), digest(wheels)]
    assert listed.names and not listed.is_complete


def test_stops_in_a_layer_once_it_is_past_the_tasks(client, push):
    big = bytes(64 * 1024 * 1024)
    listed = read_tasks(client(), push(layer({FRAMEWORK: DEFINITION, f"{SITE}/zlib.so": "", "var/big": big}, bytes)))
    assert listed.names and not listed.is_complete
    assert push.registry.bytes_sent < len(big) // 2


def test_looks_for_a_wanted_task_in_every_layer_before_it_says_no(client, push):
    older = layer({"opt/a/core_evals/other/framework.yml": OTHER})
    image = push(older, layer({FRAMEWORK: DEFINITION, "var/log": "x"}))
    assert read_tasks(client(), image, wanted=["arithmetic"]).find("chess") is None
    assert read_tasks(client(), image, wanted=["arithmetic", "chess"]).find("chess")
    listed = read_tasks(client(), image, wanted=["nonsense"])
    assert listed.is_complete and not listed.offers("nonsense")


def test_a_whole_read_has_the_tasks_of_all_layers(client, push):
    image = push(layer({"opt/a/core_evals/other/framework.yml": OTHER}), layer({FRAMEWORK: DEFINITION, "z": ""}))
    listed = read_tasks(client(), image, whole=True)
    assert listed.names == ("arithmetic", "chess", "go", "words") and listed.is_complete


def test_a_newer_file_replaces_an_older_one(client, push):
    image = push(layer({FRAMEWORK: OTHER}), layer({FRAMEWORK: DEFINITION}))
    assert read_tasks(client(), image, whole=True).names == ("arithmetic", "words")


@pytest.mark.parametrize(
    "mark",
    [
        f"{SITE}/core_evals/demo/.wh.framework.yml",
        f"{SITE}/core_evals/.wh.demo",
        "opt/.wh.venv",
        f"{SITE}/core_evals/.wh..wh..opq",
    ],
)
def test_what_a_newer_layer_deletes_is_gone(client, push, mark):
    image = push(layer({FRAMEWORK: DEFINITION}), layer({mark: ""}))
    assert read_tasks(client(), image).names == ()


def test_a_task_may_be_named_with_its_framework_even_when_undeclared(client, push):
    listed = read_tasks(client(), push(layer({FRAMEWORK: DEFINITION})))
    assert listed.find("demo-harness.words").name == "words"
    assert listed.offers("demo-harness.anything") and not listed.offers("anything")


def test_a_layer_is_downloaded_once(client, push, tmp_path):
    image = push(layer({FRAMEWORK: DEFINITION, "var/log": "x"}))
    for _ in range(3):
        read_tasks(client(cache=tmp_path), image)
    assert len(push.registry.blob_bytes_asked()) == 1
    assert read_tasks(client(cache=tmp_path), image, whole=True).is_complete
    assert len(push.registry.blob_bytes_asked()) == 2


def test_a_damaged_layer_is_one_line(client, push):
    with pytest.raises(RegistryUnreachable, match="damaged"):
        read_tasks(client(), push(layer({FRAMEWORK: DEFINITION})[:-40]))


@pytest.mark.parametrize("text", ["a: [", "- list", "framework: {}", ""])
def test_a_definition_that_is_none_names_its_path(client, push, text):
    with pytest.raises(LauncherError, match=rf"/{FRAMEWORK} of the image is no framework definition"):
        read_tasks(client(), push(layer({FRAMEWORK: text})))
