"""Files of a machine behind SSH."""

import errno
import posixpath
import secrets
import socket
import stat
from collections.abc import Iterator

import paramiko
from paramiko import sftp as protocol

from nemotron.transport.base import Entry, TransportError

NO_REASON = "the server gives no reason: is the disk full, over quota, or a folder in the way?"
READ_AT_ONCE = 1 << 15


class Files:
    """One SFTP session: for one thread at a time."""

    def __init__(self, client: "Client", place: str) -> None:
        self._client = client
        self._place = place
        self.is_usable = True

    def write(self, path: str, content: bytes, mode: int) -> None:
        folder, name = posixpath.split(path)
        temporary = posixpath.join(folder, f".{name}.{secrets.token_hex(6)}")
        with _Translated(self, path):
            self._make_folder(folder)
            try:
                self._client.create(temporary, content, mode)
                self._client.posix_rename(temporary, path)
            except BaseException:
                self._forget(temporary)
                raise

    def read(self, path: str, offset: int, size: int | None) -> bytes:
        with _Translated(self, path), self._client.open(path, "rb") as file:
            end = file.stat().st_size or 0
            wanted = max(0, end - offset) if size is None else min(size, max(0, end - offset))
            file.seek(offset)
            if wanted > READ_AT_ONCE:
                file.prefetch(offset + wanted)
            return file.read(wanted)

    def walk(self, folder: str) -> Iterator[Entry]:
        for name, attributes in self._listed(folder):
            yield from self._below(folder, name, attributes)

    def _below(self, folder: str, relative: str, found: paramiko.SFTPAttributes) -> Iterator[Entry]:
        mode = found.st_mode or 0
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            yield Entry(relative, found.st_size or 0, float(found.st_mtime or 0), stat.S_ISDIR(mode))
        if stat.S_ISDIR(mode):
            for name, attributes in self._listed(posixpath.join(folder, relative)):
                yield from self._below(folder, posixpath.join(relative, name), attributes)

    def _listed(self, folder: str) -> list[tuple[str, paramiko.SFTPAttributes]]:
        with _Translated(self, folder):
            found = self._client.listdir_attr(folder)
        return sorted(((entry.filename, entry) for entry in found), key=lambda pair: pair[0])

    def remove(self, path: str) -> None:
        try:
            with _Translated(self, path):
                mode = self._client.lstat(path).st_mode or 0
                if not stat.S_ISDIR(mode):
                    self._client.remove(path)
                    return
            for name, _ in self._listed(path):
                self.remove(posixpath.join(path, name))
            with _Translated(self, path):
                self._client.rmdir(path)
        except FileNotFoundError:
            return

    def close(self) -> None:
        self._client.close()

    def _make_folder(self, folder: str) -> None:
        try:
            self._client.stat(folder)
        except FileNotFoundError:
            self._make_folder(posixpath.dirname(folder))
            try:
                self._client.mkdir(folder)
            except OSError:
                self._client.stat(folder)  # somebody else was faster

    def _forget(self, temporary: str) -> None:
        try:
            self._client.remove(temporary)
        except (OSError, EOFError, paramiko.SSHException):
            return


class Client(paramiko.SFTPClient):
    """With what paramiko's own cannot say: a file that has its mode from its first moment on, and fsync."""

    def create(self, path: str, content: bytes, mode: int) -> None:
        private = paramiko.SFTPAttributes()
        private.st_mode = 0o600
        flags = protocol.SFTP_FLAG_WRITE | protocol.SFTP_FLAG_CREATE | protocol.SFTP_FLAG_EXCL
        _, answer = self._request(protocol.CMD_OPEN, path, flags, private)  # type: ignore[attr-defined]
        with paramiko.SFTPFile(self, answer.get_binary(), "wb") as file:
            if mode != 0o600:
                file.chmod(mode)
            file.write(content)
            file.flush()
            self._sync(file)

    def _sync(self, file: paramiko.SFTPFile) -> None:
        try:
            self._request(protocol.CMD_EXTENDED, "fsync@openssh.com", file.handle)  # type: ignore[attr-defined]
        except OSError as error:
            if "unsupported" not in str(error).lower():
                raise


class _Translated:
    """What a failed SFTP request means: the OSError that `open` would raise, or that the machine is out of reach."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, socket.timeout | EOFError | paramiko.SSHException | protocol.SFTPError) or (
            isinstance(error, OSError) and str(error) == "Socket is closed"
        ):
            self._files.is_usable = False
            raise TransportError(
                f"{self._files._place} stopped answering about {self._path}: {error or 'connection lost'}."
            ) from error
        if isinstance(error, OSError) and error.filename is None:
            if error.errno is None:
                raise OSError(errno.EIO, NO_REASON, self._path) from error
            raise OSError(error.errno, error.strerror or str(error), self._path) from error
