"""What containers/ holds is true of the suites and of itself."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from nemotron.images.reference import parse

ROOT = Path(__file__).parents[3]
CONTAINERS = ROOT / "containers"
VARIANTS = tomllib.loads((CONTAINERS / "images.toml").read_text())


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_names_an_image_and_a_digest_that_is_one(variant):
    entry = VARIANTS[variant]
    image = parse(entry["image"])
    assert image.tag and not image.is_pinned
    assert "digest" not in entry or image.pinned(entry["digest"]) == parse(f"{entry['image']}@{entry['digest']}")


def test_every_image_of_a_suite_is_a_variant():
    used = {
        name for path in (ROOT / "suites").glob("*.yaml") for name in re.findall(r"nvcr\.io[^}\s]+", path.read_text())
    }
    assert used and used <= {entry["image"] for entry in VARIANTS.values()}


def test_every_requirement_of_a_built_variant_is_pinned():
    pins = {re.split("==", line)[0].lower().replace("_", "-") for line in lines("constraints.txt")}
    for entry in VARIANTS.values():
        for requirement in lines(entry.get("requirements", "constraints.txt")):
            assert requirement == "nemo-evaluator" or requirement.partition("==")[0].lower().replace("_", "-") in pins


@pytest.mark.parametrize("arguments", [[], ["no-such-variant", "base", "image"], ["constraints", "base", "image"]])
def test_a_build_of_something_else_is_refused_in_one_line(arguments):
    done = subprocess.run([CONTAINERS / "build", *arguments], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout


def lines(name: str) -> list[str]:
    return (CONTAINERS / name).read_text().split()
