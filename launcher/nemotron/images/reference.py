"""Names of images, and how each tool wants them spelled: the one place that knows."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from nemotron.errors import UsageError

Tool = Literal["docker", "podman", "enroot", "pyxis", "apptainer"]

DEFAULT_REGISTRY, DEFAULT_NAMESPACE = "docker.io", "library"
DEFAULT_TAG = "latest"

_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?")
_REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Reference:
    """`REGISTRY/REPOSITORY[:TAG][@DIGEST]`, complete: one of tag and digest is always there."""

    registry: str
    """Host, with the port if there is one."""
    repository: str
    tag: str | None = None
    digest: str | None = None
    """`sha256:` and 64 hexadecimal digits; where there is also a tag, it is the digest that counts."""

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.registry}/{self.repository}{tag}{digest}"

    @property
    def is_pinned(self) -> bool:
        return self.digest is not None

    def pinned(self, digest: str) -> "Reference":
        return replace(self, tag=None, digest=digest)


def parse(text: str) -> Reference:
    """Reads the spelling of any tool: `docker://`, `[USER@]REGISTRY#REPOSITORY` and `REGISTRY/REPOSITORY`."""
    name, at, digest = text.removeprefix("docker://").rpartition("@")
    if not at or "#" in digest:  # the `@` of enroot's USER@REGISTRY#
        name, digest = text.removeprefix("docker://"), ""
    if digest and not _DIGEST.fullmatch(digest):
        raise _refusal(text, f"{digest!r} is no digest, which is sha256: and exactly 64 hexadecimal digits")
    registry, path = _registry_and_path(name)
    repository, _, tag = path.partition(":")
    if not _HOST.fullmatch(registry):
        raise _refusal(text, f"{registry!r} is no host")
    if not _REPOSITORY.fullmatch(repository):
        raise _refusal(text, f"{repository!r} is no repository, which is lower case, digits and . _ - between /")
    if (tag or path.endswith(":")) and not _TAG.fullmatch(tag):
        raise _refusal(text, f"{tag!r} is no tag, which is letters, digits and . _ -")
    return Reference(registry, repository, tag or (None if digest else DEFAULT_TAG), digest or None)


def parse_image(text: str, folder: Path) -> Reference | Path:
    """An image in a registry, or a file (.sqsh, .sif) below `folder`, whose path comes out absolute."""
    if is_file(text):
        return Path(text) if Path(text).is_absolute() else (folder / text).resolve()
    return parse(text)


def is_file(text: str) -> bool:
    return text.startswith(("/", "./", "../", "~")) or text.endswith((".sqsh", ".squashfs", ".sif"))


def spelled(image: Reference | Path, tool: Tool) -> str:
    """As `tool` takes it on its command line; a digest goes without the tag that led to it.

    enroot and pyxis get `REGISTRY#`, the only separator that every version of them knows. In an #SBATCH line that `#`
    needs a backslash.
    """
    if isinstance(image, Path):
        return str(image)
    version = f"@{image.digest}" if image.digest else f":{image.tag}"
    match tool:
        case "docker" | "podman":
            return f"{image.registry}/{image.repository}{version}"
        case "pyxis":
            return f"{image.registry}#{image.repository}{version}"
        case "enroot":
            return f"docker://{image.registry}#{image.repository}{version}"
        case "apptainer":
            return f"docker://{image.registry}/{image.repository}{version}"


def _registry_and_path(name: str) -> tuple[str, str]:
    """A first part without a dot or a port is a folder of the default registry, as every engine reads it."""
    if "#" in name:
        registry, _, path = name.partition("#")
        return registry.rpartition("@")[2], path
    first, slash, rest = name.partition("/")
    if slash and (first == "localhost" or "." in first or ":" in first):
        return first, rest
    return DEFAULT_REGISTRY, name if slash else f"{DEFAULT_NAMESPACE}/{name}"


def _refusal(text: str, problem: str) -> UsageError:
    return UsageError(
        f"image {text!r}: {problem}. Write REGISTRY/REPOSITORY:TAG, REGISTRY/REPOSITORY@sha256:DIGEST, "
        "or the path of a .sqsh or .sif file."
    )
