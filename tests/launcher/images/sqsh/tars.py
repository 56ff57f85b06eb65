"""Layers as builders make them: entries of every type, in any order."""

import gzip
import io
import tarfile
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

BLOCK = 512


class Entry(NamedTuple):
    info: tarfile.TarInfo
    content: bytes = b""


def file(name: str, content: str | bytes = b"", mode: int = 0o644, **fields: Any) -> Entry:
    data = content.encode() if isinstance(content, str) else content
    return Entry(_info(name, tarfile.REGTYPE, mode=mode, size=len(data), **fields), data)


def folder(name: str, mode: int = 0o755, **fields: Any) -> Entry:
    return Entry(_info(name, tarfile.DIRTYPE, mode=mode, **fields))


def symlink(name: str, target: str) -> Entry:
    return Entry(_info(name, tarfile.SYMTYPE, linkname=target, mode=0o777))


def hard_link(name: str, target: str) -> Entry:
    return Entry(_info(name, tarfile.LNKTYPE, linkname=target))


def device(name: str, major: int, minor: int, mode: int = 0o666) -> Entry:
    return Entry(_info(name, tarfile.CHRTYPE, devmajor=major, devminor=minor, mode=mode))


def fifo(name: str, mode: int = 0o644) -> Entry:
    return Entry(_info(name, tarfile.FIFOTYPE, mode=mode))


def xattrs(entry: Entry, **values: bytes) -> Entry:
    """Names with `__` for the dot."""
    entry.info.pax_headers = {
        f"SCHILY.xattr.{name.replace('__', '.')}": value.decode("utf-8", "surrogateescape")
        for name, value in values.items()
    }
    return entry


def layer(*entries: Entry, compress: Callable[[bytes], bytes] = gzip.compress) -> bytes:
    return compress(tar(entries))


def tar(entries: Sequence[Entry]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            archive.addfile(entry.info, io.BytesIO(entry.content))
    return buffer.getvalue()


def _info(name: str, kind: bytes, **fields: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mtime = kind, 1_700_000_000
    for field, value in fields.items():
        setattr(info, field, value)
    return info
