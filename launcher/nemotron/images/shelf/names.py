"""How files of a shelf are called.

sha256-….sqsh               an image, by the digest of its platform's manifest
sha256-….json               what is known of it
sha256-….linux-amd64.sqsh   link, by the digest of the index that lists it
host-team-name-1.0.sqsh     link, by the tag that led to it last
.sha256-….sqsh.claim        somebody is making it
.sha256-….sqsh.TOKEN.work   what they make it in
"""

import re

from nemotron.errors import UsageError
from nemotron.images.reference import Reference
from nemotron.images.registry import PLATFORM

SUFFIX = ".sqsh"

_IMAGE = re.compile(r"sha256-[0-9a-f]{64}\.sqsh")
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,199}")


def image_file(platform_digest: str) -> str:
    return platform_digest.replace(":", "-") + SUFFIX


def is_image_file(name: str) -> bool:
    return _IMAGE.fullmatch(name) is not None


def record_file(image: str) -> str:
    return image.removesuffix(SUFFIX) + ".json"


def claim_file(image: str) -> str:
    return f".{image}.claim"


def work_folder(image: str, token: str) -> str:
    return f".{image}.{token}.work"


def image_of_work(name: str) -> str | None:
    """The image that a hidden file or folder was made for."""
    match = re.match(r"\.(sha256-[0-9a-f]{64}\.sqsh)\..*(?:claim|work|over)", name)
    return match[1] if match else None


def index_link(index_digest: str, platform: str) -> str:
    return f"{index_digest.replace(':', '-')}.{platform.replace('/', '-')}{SUFFIX}"


def readable_link(reference: Reference, platform: str) -> str | None:
    """With `-` for what separates its parts; a name without a tag has none."""
    if reference.tag is None:
        return None
    return _of_platform(re.sub(r"[/:]", "-", f"{reference.registry}/{reference.repository}:{reference.tag}"), platform)


def variant_link(variant: str, platform: str) -> str:
    return _of_platform(f"nel-{variant}", platform)


def given_link(name: str) -> str:
    """As --filename has it."""
    plain = name.removesuffix(SUFFIX)
    if not _PLAIN.fullmatch(plain) or is_image_file(plain + SUFFIX):
        raise UsageError(
            f"--filename {name!r} is no plain file name: write letters, digits and . _ + - without a folder."
        )
    return plain + SUFFIX


def _of_platform(name: str, platform: str) -> str:
    return name + ("" if platform == PLATFORM else f".{platform.replace('/', '-')}") + SUFFIX
