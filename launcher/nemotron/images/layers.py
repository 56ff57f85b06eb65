"""Files of an image's layers, read from the download as it comes."""

import gzip
import io
import tarfile
from collections.abc import Iterator
from typing import IO, cast

import zstandard

from nemotron.images.manifests import RegistryUnreachable

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class _Download(io.RawIOBase):
    """Chunks as a file; only what is read of it is downloaded."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._left = chunks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._left:
            if (chunk := next(self._chunks, None)) is None:
                return 0
            self._left = chunk
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


def files(chunks: Iterator[bytes]) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Each path, without a leading slash, with its content if it is a regular file; to be read before the next one."""
    source = _unpacked(io.BufferedReader(_Download(chunks), 1 << 16))
    try:
        with tarfile.open(fileobj=source, mode="r|") as tar:
            for member in tar:
                yield member.name.removeprefix("./").lstrip("/"), tar.extractfile(member) if member.isfile() else None
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zstandard.ZstdError) as error:
        raise RegistryUnreachable(f"a layer is damaged ({error}): try again, or push the image anew.") from None


def _unpacked(raw: io.BufferedReader) -> IO[bytes]:
    """By its first bytes: media types of layers are not always right."""
    head = raw.peek(4)[:4]
    if head.startswith(GZIP):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
    if head == ZSTD:
        reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
        return cast("IO[bytes]", reader)
    return raw
