"""What a registry says about an image: indexes, manifests, layers. No I/O."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from nemotron.errors import LauncherError, UsageError
from nemotron.images.reference import Reference

INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
ACCEPT = ", ".join(INDEXES + MANIFESTS)
MANIFEST_LIMIT = 16 * 1024 * 1024


class RegistryUnreachable(LauncherError):
    """Nothing was learned about the image; who only wanted the digest can go on without."""


class ImageNotFound(UsageError):
    """The registry answers, and has no such image, tag, digest or platform."""


@dataclass(frozen=True, slots=True)
class Layer:
    digest: str
    media_type: str
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """Of one platform."""

    digest: str
    layers: tuple[Layer, ...]
    """The base first."""
    config: Layer
    """How to start it; a blob like the layers."""

    @property
    def size(self) -> int:
        return self.config.size + sum(layer.size for layer in self.layers)


def parsed(body: bytes, reference: Reference) -> dict[str, Any]:
    try:
        content = json.loads(body) if len(body) <= MANIFEST_LIMIT else None
    except ValueError:
        content = None
    if not isinstance(content, dict) or not ("manifests" in content or "layers" in content):
        raise RegistryUnreachable(
            f"{reference}: {reference.registry} sent no manifest of a kind that is known (OCI, or Docker schema 2): "
            "check the name, or push the image anew."
        )
    return content


def choose(manifests: list[dict[str, Any]], platform: str, reference: Reference) -> str:
    """The entry of `OS/ARCHITECTURE[/VARIANT]`; entries such as attestations have the platform unknown/unknown."""
    offered = {_platform_of(entry): str(entry["digest"]) for entry in reversed(manifests)}
    for name, digest in offered.items():
        if name == platform or name.startswith(platform + "/"):
            return digest
    exist = ", ".join(sorted(name for name in offered if not name.startswith("unknown/")))
    raise ImageNotFound(f"{reference} has no platform {platform!r}: it has {exist or 'none'}; choose with --platform.")


def _platform_of(entry: dict[str, Any]) -> str:
    platform = entry.get("platform", {})
    parts = (platform.get("os", "unknown"), platform.get("architecture", "unknown"), platform.get("variant"))
    return "/".join(part for part in parts if part)


def manifest_of(digest: str, content: dict[str, Any], reference: Reference) -> Manifest:
    try:
        return Manifest(digest, tuple(_blob(item) for item in content["layers"]), _blob(content["config"]))
    except (KeyError, TypeError, ValueError):
        raise RegistryUnreachable(f"{reference}: the manifest {digest} is not complete: push the image anew.") from None


def _blob(item: dict[str, Any]) -> Layer:
    return Layer(item["digest"], item["mediaType"], int(item["size"]))


def digest_of(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"
