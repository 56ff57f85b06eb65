from pathlib import Path

import pytest

from nemotron.errors import UsageError
from nemotron.images.reference import Reference, parse, parse_image, spelled

DIGEST = "sha256:" + "0123456789abcdef" * 4
HARNESS = "nvcr.io/nvidia/eval-factory/lm-evaluation-harness:26.03"


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        (HARNESS, Reference("nvcr.io", "nvidia/eval-factory/lm-evaluation-harness", "26.03")),
        ("127.0.0.1:5000/base", Reference("127.0.0.1:5000", "base", "latest")),
        (f"[::1]:5000/a/b@{DIGEST}", Reference("[::1]:5000", "a/b", None, DIGEST)),
        (f"host.example/a:1@{DIGEST}", Reference("host.example", "a", "1", DIGEST)),
        ("localhost/mine:dev", Reference("localhost", "mine", "dev")),
        ("ubuntu:22.04", Reference("docker.io", "library/ubuntu", "22.04")),
        ("someone/thing", Reference("docker.io", "someone/thing", "latest")),
        ("docker://nvcr.io#nvidia/tool:1", Reference("nvcr.io", "nvidia/tool", "1")),
        ("docker://$oauthtoken@nvcr.io#nvidia/tool:1", Reference("nvcr.io", "nvidia/tool", "1")),
        (f"nvcr.io:443#nvidia/tool@{DIGEST}", Reference("nvcr.io:443", "nvidia/tool", None, DIGEST)),
    ],
)
def test_reads_the_spelling_of_every_tool(text, reference):
    assert parse(text) == reference


def test_a_reference_reads_as_it_is_written():
    assert str(parse(HARNESS)) == HARNESS
    assert str(parse(f"host.example/a:1@{DIGEST}")) == f"host.example/a:1@{DIGEST}"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("nvcr.io/nvidia/tool@sha256:abc", "64 hexadecimal"),
        (f"nvcr.io/nvidia/tool@{DIGEST}0", "64 hexadecimal"),
        (f"nvcr.io/nvidia/tool@{DIGEST.upper()}", "64 hexadecimal"),
        ("nvcr.io/NVIDIA/tool:1", "no repository"),
        ("nvcr.io/tool:", "no tag"),
        ("nvcr.io/tool:a b", "no tag"),
        ("nvcr.io/", "no repository"),
        ("", "no repository"),
        ("bad host.example/tool", "no host"),
        ("https://nvcr.io/tool:1", "no host"),
    ],
)
def test_says_what_is_wrong_with_a_reference_and_how_to_write_it(text, named):
    with pytest.raises(UsageError, match=named) as refusal:
        parse(text)
    assert "REGISTRY/REPOSITORY:TAG" in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("docker", "127.0.0.1:5000/a/b/tool:1.2"),
        ("podman", "127.0.0.1:5000/a/b/tool:1.2"),
        ("pyxis", "127.0.0.1:5000#a/b/tool:1.2"),
        ("enroot", "docker://127.0.0.1:5000#a/b/tool:1.2"),
        ("apptainer", "docker://127.0.0.1:5000/a/b/tool:1.2"),
    ],
)
def test_spells_a_name_as_each_tool_takes_it(tool, expected):
    assert spelled(parse("127.0.0.1:5000/a/b/tool:1.2"), tool) == expected


@pytest.mark.parametrize("tool", ["docker", "podman", "pyxis", "enroot", "apptainer"])
def test_spells_a_digest_without_the_tag_that_led_to_it(tool):
    spelling = spelled(parse(f"nvcr.io/nvidia/tool:1@{DIGEST}"), tool)
    assert spelling.endswith(f"nvidia/tool@{DIGEST}")
    assert parse(spelling) == Reference("nvcr.io", "nvidia/tool", None, DIGEST)


@pytest.mark.parametrize("tool", ["pyxis", "enroot", "apptainer"])
@pytest.mark.parametrize("text", ["cont.sqsh", "./cont.sqsh", "images/cont.sif", "/mnt/cont.sqsh", "../cont"])
def test_a_file_is_an_absolute_path_and_never_a_name_in_a_registry(tool, text, tmp_path):
    spelling = spelled(parse_image(text, tmp_path), tool)
    assert Path(spelling).is_absolute() and Path(spelling).name == Path(text).name
