"""An image as a .sqsh in a shared folder of a machine: what is there, or a new one made once for all who ask."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from nemotron.errors import UsageError
from nemotron.images.makers import Enroot, Made, Maker, Method, Mode, Native, Wanted
from nemotron.images.manifests import RegistryUnreachable
from nemotron.images.reference import Reference
from nemotron.images.registry import Registry, RegistrySettings
from nemotron.images.shelf.names import image_file, index_link, readable_link
from nemotron.images.shelf.record import Record
from nemotron.images.shelf.shelf import Shelf
from nemotron.images.shelf.shell import ShelfFailed
from nemotron.images.sqsh.squashfs import SUPERBLOCK, bytes_used, has_mksquashfs
from nemotron.transport.base import Session

PLATFORMS = {"x86_64": "linux/amd64", "aarch64": "linux/arm64", "arm64": "linux/arm64"}

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class How:
    method: Method | None = None
    """None: native on this machine, enroot on another one; the other way where that cannot be."""
    mode: Mode = "login"
    force: bool = False
    """Make it anew though it is there."""
    links: Callable[[str], Sequence[str]] = lambda platform: ()
    """Further names for the image, given the platform."""


def ensure(
    session: Session,
    image: Reference,
    folder: str,
    environ: Mapping[str, str],
    *,
    force: bool = False,
    say: Say = lambda line: None,
) -> str:
    """Absolute path, on `session`'s machine, of the .sqsh of `image` for that machine's platform.

    One that is there is used, without a look at the registry when `image` has a digest. With a tag it is the registry
    that says which image is meant.
    """
    return cache(Shelf(session, folder), image, environ, How(force=force), say)


def cache(shelf: Shelf, image: Reference, environ: Mapping[str, str], how: How, say: Say) -> str:
    platform = platform_of(shelf.session)
    if image.digest and not how.force and (name := shelf.find(image.digest, platform)):
        _link(shelf, name, how.links(platform))
        return shelf.path(name)
    with Registry(RegistrySettings.of(environ)) as registry:
        return _from_registry(shelf, registry, image, platform, environ, how, say)


def platform_of(session: Session) -> str:
    done = session.run(["uname", "-m"])
    try:
        return PLATFORMS[done.stdout.strip()]
    except KeyError:
        raise UsageError(
            f"{session.name} says it is {done.said!r}, and images are made for {' and '.join(PLATFORMS)}."
        ) from None


def _from_registry(
    shelf: Shelf,
    registry: Registry,
    image: Reference,
    platform: str,
    environ: Mapping[str, str],
    how: How,
    say: Say,
) -> str:
    try:
        digest = registry.resolve(image, platform).digest
    except RegistryUnreachable as error:
        link = readable_link(image, platform)
        if how.force or link is None or (name := shelf.find_link(link)) is None:
            raise
        say(f"{error} Using {name}, which is what {image} was when somebody looked.")
        return shelf.path(name)
    manifest = registry.manifest(image.pinned(digest), platform)
    wanted = Wanted(image.pinned(manifest.digest), manifest, platform)
    index_digest = digest if digest != manifest.digest else None
    links = list(filter(None, [readable_link(image, platform), *how.links(platform)]))
    if not how.force and (name := shelf.find(manifest.digest, platform)):
        _link(shelf, name, [*([index_link(index_digest, platform)] if index_digest else []), *links])
        say(f"{image} is there already")
        return shelf.path(name)
    shelf.make()
    with shelf.claimed(image_file(manifest.digest), say) as (claim, work):
        name = shelf.find(manifest.digest, platform)
        if name is None or (how.force and not claim.was_contended):
            maker = _maker(shelf, registry, how, environ)
            made = maker.make(wanted, shelf, work, say)
            record = _record(shelf, made, str(image), index_digest, wanted, maker.tool)
            name = shelf.publish(made.path, record, links, claim)
        else:
            _link(shelf, name, links)
    return shelf.path(name)


def _maker(shelf: Shelf, registry: Registry, how: How, environ: Mapping[str, str]) -> Maker:
    method = how.method or _method(shelf.session, environ)
    if method == "enroot":
        return Enroot(shelf.session, how.mode, environ)
    if how.mode == "srun" and not shelf.session.is_here:
        raise UsageError("--mode srun goes with --method enroot, or with HOST local: native builds on this machine.")
    return Native(registry, environ)


def _method(session: Session, environ: Mapping[str, str]) -> Method:
    """Where the image is wanted rather than here, here rather than not at all."""
    if session.is_here and has_mksquashfs(environ):
        return "native"
    return "enroot" if session.run(["enroot", "version"]).code == 0 else "native"


def _record(shelf: Shelf, made: Made, reference: str, index_digest: str | None, wanted: Wanted, tool: str) -> Record:
    head = shelf.session.read(made.path, 0, SUPERBLOCK)
    size, used = shelf.size(made.path), bytes_used(head)
    if used is None or used > size:
        raise ShelfFailed(f"{made.path} is no whole squashfs: run it again, or try the other --method.")
    return Record(
        reference=reference,
        index_digest=index_digest,
        platform=wanted.platform,
        platform_digest=wanted.manifest.digest,
        layers=tuple(layer.digest for layer in wanted.manifest.layers),
        size=size,
        sha256=made.sha256,
        tool=tool,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _link(shelf: Shelf, name: str, links: Sequence[str]) -> None:
    """Leaves what is right as it is, so that who may only read the folder can use it."""
    known = {found.name: found.target for found in shelf.entries()[0]} if links else {}
    shelf.link([link for link in links if known.get(link) != name], name, secrets.token_hex(8))
