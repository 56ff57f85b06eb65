"""Images by the short names of containers/images.toml."""

from dataclasses import replace

import pytest

from nemotron.errors import UsageError
from nemotron.images.reference import parse
from nemotron.images.variants import image_of, of_variant, variants

NAME = "lm-evaluation-harness"


def test_a_variant_is_the_image_that_the_suites_use():
    image, variant = image_of(NAME, None, None)
    assert (str(image).partition("@")[0], variant) == (str(variants()[NAME].image), NAME)


def test_the_digest_that_somebody_noted_goes_with_it_and_not_with_another_tag():
    noted = replace(variants()[NAME], digest="sha256:" + "a" * 64)
    assert of_variant(noted, None, None).digest == noted.digest
    assert of_variant(noted, None, "26.04").digest is None


@pytest.mark.parametrize(
    ("registry", "tag", "image"),
    [
        ("host:5000/team", None, f"host:5000/team/{NAME}:26.03"),
        ("host:5000/team/", "new", f"host:5000/team/{NAME}:new"),
        (None, "new", f"nvcr.io/nvidia/eval-factory/{NAME}:new"),
    ],
)
def test_registry_and_tag_can_be_others(registry, tag, image):
    assert str(image_of(NAME, registry, tag)[0]) == image


@pytest.mark.parametrize(
    "text", ["docker://me@nvcr.io#a/b:1", "docker://nvcr.io/a/b:1", "nvcr.io#a/b:1", "nvcr.io/a/b:1"]
)
def test_any_spelling_of_an_image_will_do(text):
    assert image_of(text, None, None) == (parse("nvcr.io/a/b:1"), None)


def test_a_variant_that_is_written_wrong_is_not_looked_for_in_the_public_registry():
    with pytest.raises(UsageError, match=f"Unknown variant 'lm-evaluation-harnes'. Did you mean '{NAME}'"):
        image_of("lm-evaluation-harnes", None, None)
    assert str(image_of("docker.io/library/ubuntu", None, None)[0]) == "docker.io/library/ubuntu:latest"


@pytest.mark.parametrize(("registry", "tag", "flag"), [("host", None, "--registry 'host'"), (None, "1", "--tag '1'")])
def test_flags_that_would_do_nothing_are_refused(registry, tag, flag):
    with pytest.raises(UsageError, match=f"{flag} goes with a variant"):
        image_of("nvcr.io/a/b:1", registry, tag)
