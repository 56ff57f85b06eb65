"""This machine, as its own login node."""

import contextlib
import errno
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from nemotron.secrets import without_secrets
from nemotron.transport.base import Done, Entry, TransportError

NOT_FOUND = 127


class Here:
    name = "this machine"
    is_here = True

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Commands get `environ` without its secrets."""
        self._environ = without_secrets(environ)

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout: float = 60.0) -> Done:
        try:
            done = subprocess.run(command, input=stdin, capture_output=True, env=self._environ, timeout=timeout)
        except FileNotFoundError:
            return Done(NOT_FOUND, "", f"{command[0]}: command not found")
        except PermissionError as error:
            return Done(126, "", f"{command[0]}: {error.strerror}")
        except subprocess.TimeoutExpired:
            raise TransportError(f"{command[0]} on {self.name} gave no answer within {timeout:.0f} s.") from None
        return Done(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))

    def write(self, path: str, content: bytes, mode: int = 0o644) -> None:
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(descriptor, mode)
                file.write(content)
                file.flush()
                os.fsync(descriptor)
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def read(self, path: str, offset: int = 0, size: int | None = None) -> bytes:
        with Path(path).open("rb") as file:
            file.seek(offset)
            return file.read(-1 if size is None else size)

    def walk(self, folder: str) -> Iterator[Entry]:
        """Folders and files that vanish meanwhile are left out."""
        if not Path(folder).is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
        for parent, folders, files in os.walk(folder):
            for name in sorted(folders) + sorted(files):
                path = Path(parent) / name
                with contextlib.suppress(FileNotFoundError):
                    found = path.lstat()
                    is_folder = stat.S_ISDIR(found.st_mode)
                    if is_folder or stat.S_ISREG(found.st_mode):
                        yield Entry(str(path.relative_to(folder)), found.st_size, found.st_mtime, is_folder)

    def remove(self, path: str) -> None:
        target = Path(path)
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)

    def close(self) -> None:
        pass
