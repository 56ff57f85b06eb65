"""Files of a machine behind SSH, over one SFTP session."""

import errno
import posixpath
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import paramiko
from paramiko import sftp as protocol

from nemotron.transport.base import Entry, TransportError
from nemotron.transport.sftp_client import SftpClient, Stream

SECONDS = 60.0
"""How long one request may stay without any answer; whoever makes a stream sets it there."""
READ_AT_ONCE = 1 << 15
WHAT_SFTP_SAYS = {errno.ENOENT, errno.EACCES, errno.EIO, errno.ENOTSUP}


class Files:
    """For one thread at a time. After a TransportError, and after any interruption, it is of no further use."""

    def __init__(self, open_stream: Callable[[], Stream], place: str) -> None:
        self._place = place
        with self._translated("SFTP"):
            stream = open_stream()
            try:
                self._client = SftpClient(stream)  # type: ignore[arg-type]
            except BaseException:
                stream.close()
                raise

    def write(self, path: str, content: bytes, mode: int) -> None:
        folder, name = posixpath.split(_raw(path))
        temporary = posixpath.join(folder, b".%s.%s" % (name, secrets.token_hex(6).encode()))
        with self._translated(path):
            self._make_folder(folder)
            try:
                with self._client.create(temporary, mode) as file:
                    file.write(content)
                    self._client.sync(file)
                self._client.posix_rename(temporary, _raw(path))
            except BaseException:
                with suppress(OSError, EOFError, paramiko.SSHException):
                    self._client.remove(temporary)
                raise

    def read(self, path: str, offset: int, size: int | None) -> bytes:
        with self._translated(path), self._client.open(_raw(path), "rb") as file:
            if size is None or size > READ_AT_ONCE:
                left = max(0, (file.stat().st_size or 0) - offset)
                size = left if size is None else min(size, left)
            file.seek(offset)
            if size > READ_AT_ONCE:
                file.prefetch(offset + size)
            return file.read(size)

    def walk(self, folder: str) -> Iterator[Entry]:
        """Folders that vanish meanwhile count as empty."""
        yield from self._below(_raw(folder), b"")

    def _below(self, top: bytes, folder: bytes) -> Iterator[Entry]:
        for name, found in self._listed(posixpath.join(top, folder)):
            path, mode = posixpath.join(folder, name), found.st_mode or 0
            if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
                yield Entry(_text(path), found.st_size or 0, float(found.st_mtime or 0), stat.S_ISDIR(mode))
            if stat.S_ISDIR(mode):
                with suppress(FileNotFoundError):
                    yield from self._below(top, path)

    def _listed(self, folder: bytes) -> list[tuple[bytes, paramiko.SFTPAttributes]]:
        with self._translated(_text(folder)):
            return self._client.listed(folder)

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._remove(_raw(path))

    def _remove(self, path: bytes) -> None:
        with self._translated(_text(path)):
            is_folder = stat.S_ISDIR(self._client.lstat(path).st_mode or 0)
            if not is_folder:
                self._client.remove(path)
                return
        for name, _ in self._listed(path):
            with suppress(FileNotFoundError):
                self._remove(posixpath.join(path, name))
        with self._translated(_text(path)):
            self._client.rmdir(path)

    def close(self) -> None:
        with suppress(EOFError, paramiko.SSHException, OSError):
            self._client.close()

    def _make_folder(self, folder: bytes) -> None:
        try:
            self._client.stat(folder)
        except FileNotFoundError:
            self._make_folder(posixpath.dirname(folder))
            try:
                self._client.mkdir(folder)
            except OSError:
                self._client.stat(folder)  # somebody else was faster

    @contextmanager
    def _translated(self, path: str) -> Iterator[None]:
        """What a failed request means: the OSError that `open` would raise, or that the machine is out of reach."""
        try:
            yield
        except (EOFError, paramiko.SSHException, protocol.SFTPError) as error:
            raise TransportError(f"{self._place} stopped answering ({path}): {error or 'connection lost'}.") from error
        except OSError as error:
            if error.errno in WHAT_SFTP_SAYS:
                raise OSError(error.errno, error.strerror, path) from error
            why = "no answer" if isinstance(error, TimeoutError) else str(error)
            raise TransportError(f"{self._place} stopped answering ({path}): {why}.") from error


def _raw(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")
