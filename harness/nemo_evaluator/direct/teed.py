"""harness.log: what the harness says, masked, on disk and on our own output as it appears."""

from __future__ import annotations

import os
from pathlib import Path

from nemo_evaluator.direct.errors import StorageFailed
from nemo_evaluator.direct.masking import Masker

STDOUT = 1


class HarnessLog:
    """Appends: a second attempt hides nothing of the first. Not being able to write is told once, at the end."""

    def __init__(self, path: Path, masker: Masker, echo: int = STDOUT) -> None:
        self._path = path
        self._masker = masker
        self._echo: int | None = echo
        self._failure: OSError | None = None
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        try:
            self._file = os.open(path, flags, 0o644)
        except OSError as error:
            raise _failed(path, error) from error

    def write(self, data: bytes) -> bytes:
        """What became of it."""
        masked = self._masker.feed(data)
        self._put(masked)
        return masked

    def close(self) -> None:
        """Raises StorageFailed when something is missing in the file."""
        self._put(self._masker.flush())
        os.close(self._file)
        if self._failure is not None:
            raise _failed(self._path, self._failure)

    def _put(self, data: bytes) -> None:
        if self._failure is None:
            try:
                _write_all(self._file, data)
            except OSError as error:
                self._failure = error
        if self._echo is not None:
            try:
                _write_all(self._echo, data)
            except OSError:
                self._echo = None  # nobody listens any more; the log goes on


def tail(path: Path, limit: int) -> str:
    """The last `limit` bytes, from the start of a line."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - limit))
        data = file.read()
    if size > limit and b"\n" in data:
        data = data.partition(b"\n")[2]
    return data.decode("utf-8", "replace")


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _failed(path: Path, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"{path} cannot be written ({error.strerror}): make room or mend the storage, then go on with resume=true."
    )
