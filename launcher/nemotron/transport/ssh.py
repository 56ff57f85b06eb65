"""A machine behind SSH: one connection for all commands and files."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from nemotron.transport.base import Done, Entry, TransportError
from nemotron.transport.destination import Destination
from nemotron.transport.sftp import Files
from nemotron.transport.sftp_pool import FilesPool
from nemotron.transport.ssh_chain import Chain
from nemotron.transport.ssh_config import route_to
from nemotron.transport.ssh_line import Line, NoRoomError, NotSentError
from nemotron.transport.ssh_shared import shared_line

T = TypeVar("T")


class Ssh:
    """Connects when it is first used, and once more when a kept connection turns out broken before a command went out.
    Methods may be called from several threads at once."""

    is_here = False

    def __init__(self, destination: Destination, environ: Mapping[str, str]) -> None:
        self._destination = destination
        self._environ = environ
        self._route = route_to(destination, environ)
        self.name = str(self._route[-1])
        self._kept: _Kept | None = None
        self._lock = threading.RLock()

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout: float = 60.0) -> Done:
        kept, is_new = self._connected()
        try:
            return kept.line.run(command, stdin, timeout)
        except NotSentError:
            self._drop(kept)
            if is_new:
                raise
        return self._connected()[0].line.run(command, stdin, timeout)

    def write(self, path: str, content: bytes, mode: int = 0o644) -> None:
        self._ask(lambda files: files.write(path, content, mode))

    def read(self, path: str, offset: int = 0, size: int | None = None) -> bytes:
        return self._ask(lambda files: files.read(path, offset, size))

    def walk(self, folder: str) -> Iterator[Entry]:
        yield from self._ask(lambda files: list(files.walk(folder)))

    def remove(self, path: str) -> None:
        self._ask(lambda files: files.remove(path))

    def close(self) -> None:
        self._drop(self._kept)

    def _ask(self, ask: Callable[[Files], T]) -> T:
        """Twice, if it must be: what is done to files here may be done again."""
        kept, is_new = self._connected()
        try:
            with kept.pool.borrowed() as files:
                return ask(files)
        except NoRoomError:
            raise
        except TransportError:
            self._drop(kept)
            if is_new:
                raise
        with self._connected()[0].pool.borrowed() as files:
            return ask(files)

    def _connected(self) -> "tuple[_Kept, bool]":
        """The connection, and whether it is new."""
        with self._lock:
            if self._kept is not None and not self._kept.line.is_alive:
                self._drop(self._kept)
            if self._kept is not None:
                return self._kept, False
            shared = shared_line(self._destination, self._route[-1], self._environ)
            line = shared or Chain(self._route, self._environ)
            self._kept = _Kept(line, FilesPool(line.files))
            return self._kept, True

    def _drop(self, kept: "_Kept | None") -> None:
        """Unless another thread has done so, and connected again."""
        with self._lock:
            if kept is None or kept is not self._kept:
                return
            self._kept = None
        kept.pool.close()
        kept.line.close()


@dataclass(frozen=True, slots=True)
class _Kept:
    line: Line
    pool: FilesPool
