"""A layer's archive on disk, entry by entry; gzip, zstd or not compressed."""

import gzip
import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import zstandard
from isal import igzip
from isal.igzip_lib import IsalError

from nemotron.images.layers import GZIP, ZSTD
from nemotron.images.sqsh.tree import ImageDamaged

BUFFER = 1 << 18
DAMAGES: tuple[type[Exception], ...] = (
    tarfile.TarError,
    EOFError,
    gzip.BadGzipFile,
    IsalError,  # type: ignore[assignment]  # its stub calls the class an instance
    zstandard.ZstdError,
)


class _Forward(io.RawIOBase):
    """A stream that knows where it is, and seeks forward by reading: all that tarfile wants of a file."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source, self._at = source, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Stops at the end of what there is, where the next read says so."""
        while (left := offset - self._at) > 0 and self.read(min(left, BUFFER)):
            pass
        return self._at


class Archive:
    """Entries are to be used before the next one is asked for."""

    def __init__(self, source: IO[bytes]) -> None:
        self._stream = _Forward(source)

    def __iter__(self) -> Iterator[tarfile.TarInfo]:
        with tarfile.open(fileobj=self._stream, mode="r:") as tar:
            self._tar = tar
            while (entry := tar.next()) is not None:
                tar.members = []  # type: ignore[attr-defined]  # they are of no more use, and a layer may have a million
                yield entry

    def copy(self, entry: tarfile.TarInfo, target: IO[bytes]) -> None:
        """The content of a regular file, with the holes of a sparse one filled."""
        if entry.issparse():
            content = self._tar.extractfile(entry)
            assert content is not None
            source: IO[bytes] = content
        else:
            self._stream.seek(entry.offset_data)
            source = cast("IO[bytes]", self._stream)
        left = entry.size
        while left:
            if not (data := source.read(min(left, BUFFER))):
                raise tarfile.ReadError("unexpected end of data")
            target.write(data)
            left -= len(data)


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """By its first bytes: media types of layers are not always right."""
    try:
        with path.open("rb") as file:
            head = file.read(4)
            file.seek(0)
            if head.startswith(GZIP):
                source = cast("IO[bytes]", igzip.IGzipFile(fileobj=file))  # type: ignore[no-untyped-call]
            elif head == ZSTD:
                reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
                source = cast("IO[bytes]", reader)
            else:
                source = file
            yield Archive(cast("IO[bytes]", io.BufferedReader(cast("io.RawIOBase", source), BUFFER)))
    except DAMAGES as error:
        raise ImageDamaged(f"layer {path.name} is damaged ({error}): push the image anew.") from None
