"""Being told to stop: by a scheduler, by its time limit, by Ctrl-C."""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Callable, Iterator

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP)
REQUEUE, INTERRUPTED = 75, 130
ECHO_SECONDS = 5.0
"""Schedulers send SIGTERM twice, to the step and to the job; Ctrl-C arrives twice, from the terminal and from who
started us, but at once."""
INTERRUPT_ECHO_SECONDS = 1.0


class Stopped(BaseException):
    """Leaves whatever was waiting; never an error of its own."""


class Stop:
    """Remembers the first signal."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.signal: int | None = None
        self.hurries = False
        """Told again; not by the same event that came over two ways."""
        self._first = 0.0
        self._raises = False
        self.reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)

    def listen(self) -> None:
        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup
                signal.signal(number, self._received)

    @property
    def is_requested(self) -> bool:
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        return INTERRUPTED if self.signal == signal.SIGINT else REQUEUE

    def sleep(self, seconds: float) -> None:
        """Raises Stopped when told to; time.sleep would sleep on."""
        if self.is_requested or select.select([self.reader], [], [], seconds)[0]:
            raise Stopped

    @contextmanager
    def raising(self) -> Iterator[None]:
        """In here a signal raises Stopped wherever the program is: for waiting on the network."""
        if self.is_requested:
            raise Stopped
        self._raises = True
        try:
            yield
        finally:
            self._raises = False

    def _received(self, number: int, frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal, self._first = number, self._clock()
        echo = INTERRUPT_ECHO_SECONDS if number == signal.SIGINT else ECHO_SECONDS
        self.hurries = self.hurries or self._clock() - self._first > echo
        with suppress(BlockingIOError):
            os.write(self._writer, b"!")
        if self._raises:
            raise Stopped
