"""paramiko's SFTP with what it cannot say: files that have their mode from their first moment on, fsync, names of any
bytes, and errors with a number."""

import errno
import os
from collections.abc import Iterator
from typing import Protocol

import paramiko
from paramiko import sftp

NO_REASON = "the server gives no reason: is the disk full, over quota, or a folder in the way?"
NUMBERS = {
    sftp.SFTP_NO_SUCH_FILE: errno.ENOENT,
    sftp.SFTP_PERMISSION_DENIED: errno.EACCES,
    sftp.SFTP_OP_UNSUPPORTED: errno.ENOTSUP,
}
"""The protocol has no others; whatever else goes wrong is one and the same failure."""


class Stream(Protocol):
    """What an SFTP session runs over; a channel is one."""

    def send(self, content: bytes, /) -> int: ...
    def recv(self, size: int, /) -> bytes: ...
    def close(self) -> None: ...
    def get_name(self) -> str: ...


class SftpClient(paramiko.SFTPClient):
    def create(self, path: bytes, mode: int) -> paramiko.SFTPFile:
        """A file that was not there before, for writing."""
        private = paramiko.SFTPAttributes()
        private.st_mode = mode & 0o600
        flags = sftp.SFTP_FLAG_WRITE | sftp.SFTP_FLAG_CREATE | sftp.SFTP_FLAG_EXCL
        _, answer = self._request(sftp.CMD_OPEN, path, flags, private)  # type: ignore[attr-defined]
        file = paramiko.SFTPFile(self, answer.get_binary(), "wb")
        if mode & ~0o600:
            file.chmod(mode)
        return file

    def sync(self, file: paramiko.SFTPFile) -> None:
        """Down to the disk, where the server can."""
        try:
            self._request(sftp.CMD_EXTENDED, "fsync@openssh.com", file.handle)  # type: ignore[attr-defined]
        except OSError as error:
            if error.errno != errno.ENOTSUP:
                raise

    def listed(self, folder: bytes) -> list[tuple[bytes, paramiko.SFTPAttributes]]:
        """Sorted by name."""
        _, answer = self._request(sftp.CMD_OPENDIR, folder)  # type: ignore[attr-defined]
        handle = answer.get_binary()
        found = dict(self._entries(handle))
        self._request(sftp.CMD_CLOSE, handle)  # type: ignore[attr-defined]
        return sorted((name, entry) for name, entry in found.items() if name not in (b".", b".."))

    def _entries(self, handle: bytes) -> Iterator[tuple[bytes, paramiko.SFTPAttributes]]:
        while True:
            try:
                _, answer = self._request(sftp.CMD_READDIR, handle)  # type: ignore[attr-defined]
            except EOFError:
                return
            for _ in range(answer.get_int()):
                name, _ = answer.get_binary(), answer.get_binary()
                yield name, paramiko.SFTPAttributes._from_msg(answer)  # type: ignore[attr-defined]

    def _convert_status(self, answer: paramiko.Message) -> None:
        code, words = answer.get_int(), answer.get_binary().decode("utf-8", "replace")
        if code == sftp.SFTP_EOF:
            raise EOFError(words)
        if code != sftp.SFTP_OK:
            number = NUMBERS.get(code, errno.EIO)
            raise OSError(number, NO_REASON if number == errno.EIO else os.strerror(number))
