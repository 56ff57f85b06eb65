"""The server side of SFTP over this machine's files, as an old server has it: posix-rename, and no fsync."""

import os
from pathlib import Path

import paramiko
from paramiko import sftp


def _refused(error: OSError) -> int:
    return paramiko.SFTPServer.convert_errno(error.errno or 0)


class _File(paramiko.SFTPHandle):
    def __init__(self, descriptor: int) -> None:
        super().__init__(os.O_RDWR)
        self._descriptor = descriptor

    def close(self) -> None:
        os.close(self._descriptor)

    def read(self, offset: int, length: int) -> bytes | int:
        try:
            return os.pread(self._descriptor, length, offset)
        except OSError as error:
            return _refused(error)

    def write(self, offset: int, data: bytes) -> int:
        try:
            os.pwrite(self._descriptor, data, offset)
        except OSError as error:
            return _refused(error)
        return sftp.SFTP_OK

    def stat(self) -> paramiko.SFTPAttributes:
        return paramiko.SFTPAttributes.from_stat(os.fstat(self._descriptor))

    def chattr(self, attr: paramiko.SFTPAttributes) -> int:
        os.fchmod(self._descriptor, attr.st_mode or 0)
        return sftp.SFTP_OK


class SftpFolder(paramiko.SFTPServerInterface):
    def list_folder(self, path: str) -> list[paramiko.SFTPAttributes] | int:
        try:
            return [
                paramiko.SFTPAttributes.from_stat(entry.lstat(), entry.name) for entry in sorted(Path(path).iterdir())
            ]
        except OSError as error:
            return _refused(error)

    def stat(self, path: str) -> paramiko.SFTPAttributes | int:
        try:
            return paramiko.SFTPAttributes.from_stat(Path(path).stat())
        except OSError as error:
            return _refused(error)

    def lstat(self, path: str) -> paramiko.SFTPAttributes | int:
        try:
            return paramiko.SFTPAttributes.from_stat(Path(path).lstat())
        except OSError as error:
            return _refused(error)

    def open(self, path: str, flags: int, attr: paramiko.SFTPAttributes) -> paramiko.SFTPHandle | int:
        try:
            return _File(os.open(path, flags, attr.st_mode if attr.st_mode is not None else 0o666))
        except OSError as error:
            return _refused(error)

    def remove(self, path: str) -> int:
        return self._done(Path(path).unlink)

    def posix_rename(self, oldpath: str, newpath: str) -> int:
        return self._done(lambda: Path(oldpath).replace(newpath))

    def mkdir(self, path: str, attr: paramiko.SFTPAttributes) -> int:
        return self._done(Path(path).mkdir)

    def rmdir(self, path: str) -> int:
        return self._done(Path(path).rmdir)

    @staticmethod
    def _done(work) -> int:
        try:
            work()
        except OSError as error:
            return _refused(error)
        return sftp.SFTP_OK
