"""SFTP sessions of one connection: as many as are needed at once, and as the server takes."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nemotron.transport.sftp import Files
from nemotron.transport.ssh_line import NoRoomError

LOOK_SECONDS = 0.2


class FilesPool:
    def __init__(self, open_files: Callable[[], Files]) -> None:
        self._open = open_files
        self._idle: list[Files] = []
        self._taken = 0
        self._is_closed = False
        self._changed = threading.Condition()

    @contextmanager
    def borrowed(self) -> Iterator[Files]:
        """For the caller alone. An OSError is the file's; after any other end the session may be out of step."""
        files, is_sound = self._take(), False
        try:
            yield files
            is_sound = True
        except OSError:
            is_sound = True
            raise
        finally:
            self._give_back(files, is_sound=is_sound)

    def _take(self) -> Files:
        while True:
            with self._changed:
                self._taken += 1
                if self._idle:
                    return self._idle.pop()
            try:
                return self._open()
            except BaseException as error:
                with self._changed:
                    self._taken -= 1
                    if not isinstance(error, NoRoomError) or not (self._taken or self._idle):
                        raise
                    self._changed.wait_for(lambda: self._idle, LOOK_SECONDS)

    def _give_back(self, files: Files, *, is_sound: bool) -> None:
        with self._changed:
            self._taken -= 1
            is_kept = is_sound and not self._is_closed
            if is_kept:
                self._idle.append(files)
            self._changed.notify()
        if not is_kept:
            files.close()

    def close(self) -> None:
        """Those that are borrowed end when they are given back."""
        with self._changed:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for files in idle:
            files.close()
