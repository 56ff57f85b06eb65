"""The harness images that go by a short name: containers/images.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from nemotron.bundled import folder
from nemotron.errors import UsageError, unknown
from nemotron.images.reference import Reference, parse


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    image: Reference
    digest: str | None
    """What the image's tag stood for when somebody looked."""


def variants() -> Mapping[str, Variant]:
    content = tomllib.loads((folder("containers") / "images.toml").read_text())
    return {name: Variant(name, parse(entry["image"]), entry.get("digest")) for name, entry in content.items()}


def of_variant(variant: Variant, registry: str | None, tag: str | None) -> Reference:
    """Under another registry (with its folders) or tag it is another image, whose digest nobody noted."""
    image = variant.image
    if registry is None and tag is None:
        return replace(image, digest=variant.digest)
    name = image.repository.rpartition("/")[2]
    root = registry or f"{image.registry}/{image.repository.rpartition('/')[0]}"
    return parse(f"{root.rstrip('/')}/{name}:{tag or image.tag}")


def image_of(target: str, registry: str | None, tag: str | None) -> tuple[Reference, str | None]:
    """And the name of the variant, where it is one."""
    known = variants()
    if variant := known.get(target):
        return of_variant(variant, registry, tag), variant.name
    for flag, value in ("--registry", registry), ("--tag", tag):
        if value is not None:
            raise UsageError(
                f"{flag} {value!r} goes with a variant ({', '.join(sorted(known))}), and {target!r} is an image: "
                "write its registry and tag into its name."
            )
    if target.isidentifier() or target.replace("-", "").isalnum():
        raise UsageError(f"{unknown('variant', target, known)} An image has its registry before it, or a tag behind.")
    return parse(target), None
