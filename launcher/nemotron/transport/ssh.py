"""A machine behind SSH: one connection for all commands and files."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from nemotron.transport.base import Done, Entry, TransportError
from nemotron.transport.destination import Destination
from nemotron.transport.sftp import Files
from nemotron.transport.ssh_chain import Chain
from nemotron.transport.ssh_config import route_to
from nemotron.transport.ssh_line import Line, NoRoomError, NotSentError
from nemotron.transport.ssh_shared import shared_line

T = TypeVar("T")
LOOK_SECONDS = 0.2


class Ssh:
    """Connects when it is first used, and once more when a kept connection turns out broken before a command went out.
    Methods may be called from several threads at once."""

    is_here = False

    def __init__(self, destination: Destination, environ: Mapping[str, str]) -> None:
        self._destination = destination
        self._environ = environ
        self._route = route_to(destination, environ)
        self.name = str(self._route[-1])
        self._line: Line | None = None
        self._idle: list[Files] = []
        self._lock = threading.RLock()
        self._given_back = threading.Condition(self._lock)
        self._taken = 0

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout: float = 60.0) -> Done:
        line, is_new = self._connected()
        try:
            return line.run(command, stdin, timeout)
        except NotSentError:
            self._drop(line)
            if is_new:
                raise
        return self._connected()[0].run(command, stdin, timeout)

    def write(self, path: str, content: bytes, mode: int = 0o644) -> None:
        self._ask(lambda files: files.write(path, content, mode))

    def read(self, path: str, offset: int = 0, size: int | None = None) -> bytes:
        return self._ask(lambda files: files.read(path, offset, size))

    def walk(self, folder: str) -> Iterator[Entry]:
        yield from self._ask(lambda files: list(files.walk(folder)))

    def remove(self, path: str) -> None:
        self._ask(lambda files: files.remove(path))

    def close(self) -> None:
        self._drop(self._line)

    def _ask(self, ask: Callable[[Files], T]) -> T:
        """Twice, if it must be: what is done to files here may be done again."""
        line, is_new = self._connected()
        try:
            return self._ask_once(line, ask)
        except NoRoomError:
            raise
        except TransportError:
            self._drop(line)
            if is_new:
                raise
        return self._ask_once(self._connected()[0], ask)

    def _ask_once(self, line: Line, ask: Callable[[Files], T]) -> T:
        files = self._take(line)
        is_sound = False
        try:
            answer = ask(files)
            is_sound = True
        except OSError:
            is_sound = True
            raise
        finally:
            self._give_back(files, line, is_sound=is_sound)
        return answer

    def _take(self, line: Line) -> Files:
        """An SFTP session that nobody uses just now; as many are kept as were needed at once, and the server takes."""
        while True:
            with self._lock:
                self._taken += 1
                if self._idle and line is self._line:
                    return self._idle.pop()
            try:
                return line.files()
            except BaseException as error:
                with self._given_back:
                    self._taken -= 1
                    if not isinstance(error, NoRoomError) or not (self._taken or self._idle):
                        raise
                    self._given_back.wait_for(lambda: self._idle, LOOK_SECONDS)

    def _give_back(self, files: Files, line: Line, *, is_sound: bool) -> None:
        with self._given_back:
            self._taken -= 1
            is_kept = is_sound and line is self._line
            if is_kept:
                self._idle.append(files)
            self._given_back.notify()
        if not is_kept:
            files.close()

    def _connected(self) -> tuple[Line, bool]:
        """The line, and whether it is new."""
        with self._lock:
            if self._line is not None and not self._line.is_alive:
                self._drop(self._line)
            if self._line is not None:
                return self._line, False
            shared = shared_line(self._destination, self._route[-1], self._environ)
            self._line = shared or Chain(self._route, self._environ)
            return self._line, True

    def _drop(self, line: Line | None) -> None:
        """Unless another thread has done so, and connected again."""
        with self._lock:
            if line is None or line is not self._line:
                return
            idle, self._idle, self._line = self._idle, [], None
        for files in idle:
            files.close()
        line.close()
