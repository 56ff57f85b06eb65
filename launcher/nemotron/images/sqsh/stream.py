"""The merged tree as one tar stream, in the dialect that mksquashfs reads rightly."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tarfile import BLOCKSIZE, DIRTYPE, GNU_FORMAT, LNKTYPE, NUL, REGTYPE, TarInfo
from typing import IO

from nemotron.images.sqsh.archive import Archive, opened
from nemotron.images.sqsh.tree import Looks, Tree, folders, names, xattrs_of

Xattrs = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Extra:
    """A file that no layer has."""

    path: str
    content: bytes
    mode: int = 0o644


def write_tree(tree: Tree, layers: Sequence[Path], extras: Sequence[Extra], target: IO[bytes]) -> None:
    """Folders, what is ours, then the files of each layer as its archive has them; the root folder cannot be told."""
    for path, folder in folders(tree):
        if path:
            _write_folder(path, folder.looks or Looks(), target)
    for extra in extras:
        entry = _entry(extra.path, REGTYPE, extra.mode)
        entry.size = len(extra.content)
        target.write(_header(entry))
        target.write(_padded(extra.content))
    placed = by_layer(names(tree), len(layers))
    for layer, numbers in zip(layers, placed, strict=True):
        if numbers:
            with opened(layer) as archive:
                _write_layer(archive, numbers, target)
    target.write(NUL * BLOCKSIZE * 2)


def by_layer(files: Mapping[int, list[str]], count: int) -> list[dict[int, list[str]]]:
    """For each layer the names of those of its entries that are seen."""
    placed: list[dict[int, list[str]]] = [{} for _ in range(count)]
    for key, paths in files.items():
        placed[key >> 32][key & 0xFFFFFFFF] = paths
    return placed


def _write_folder(path: str, looks: Looks, target: IO[bytes]) -> None:
    entry = _entry(path, DIRTYPE, looks.mode)
    entry.mtime = looks.mtime
    target.write(_header(entry, looks.xattrs))


def _write_layer(archive: Archive, numbers: dict[int, list[str]], target: IO[bytes]) -> None:
    left = len(numbers)
    for number, entry in enumerate(archive):
        if (paths := numbers.get(number)) is None:
            continue
        _write_file(archive, entry, paths, target)
        if (left := left - 1) == 0:
            return


def _write_file(archive: Archive, entry: TarInfo, paths: list[str], target: IO[bytes]) -> None:
    """Under its first name; the others are hard links to that."""
    first, *others = paths
    seen = _entry(first, REGTYPE if entry.isreg() else entry.type, entry.mode & 0o7777)
    seen.mtime, seen.size = int(entry.mtime), entry.size if entry.isreg() else 0
    seen.linkname = entry.linkname if entry.issym() else ""
    seen.devmajor, seen.devminor = entry.devmajor, entry.devminor
    target.write(_header(seen, xattrs_of(entry)))
    if entry.isreg():
        archive.copy(entry, target)
        target.write(NUL * (-entry.size % BLOCKSIZE))
    for other in others:
        link = _entry(other, LNKTYPE, seen.mode)
        link.linkname = first
        target.write(_header(link))


def _entry(path: str, kind: bytes, mode: int) -> TarInfo:
    """Owned by root, as enroot makes it."""
    entry = TarInfo(path)
    entry.type, entry.mode = kind, mode
    return entry


def _header(entry: TarInfo, xattrs: Xattrs = ()) -> bytes:
    """In GNU's format: of a long target of a symlink in pax format mksquashfs 4.5 drops a leading `/` or `../`."""
    header = entry.tobuf(GNU_FORMAT, "utf-8", "surrogateescape")
    records = b"".join(_record(name, value) for name, value in xattrs)
    if not records:
        return header
    extended = TarInfo("xattrs")
    extended.type, extended.size = b"x", len(records)
    return extended.tobuf(GNU_FORMAT) + _padded(records) + header


def _record(name: str, value: str) -> bytes:
    """`LENGTH NAME=VALUE`, where the length counts itself."""
    rest = f" {name}={value}\n".encode("utf-8", "surrogateescape")
    length = len(rest)
    while (whole := len(rest) + len(str(length))) != length:
        length = whole
    return str(length).encode() + rest


def _padded(content: bytes) -> bytes:
    return content + NUL * (-len(content) % BLOCKSIZE)
