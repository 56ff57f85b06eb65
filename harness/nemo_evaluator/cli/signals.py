"""Ctrl-C, SIGTERM, and the terminal that goes away."""

import asyncio
import os
import signal
import time
from types import FrameType

import click

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ECHO_SECONDS = 5.0
"""Schedulers send SIGTERM twice, to the step and to the job: an echo hurries nobody."""


class StopOnSignal:
    """The first signal asks the run to finish its files, another one ends the process at once.

    Plain signal handlers and not the event loop's: they also run while a scorer holds the loop.
    """

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.exit_code = 0
        self._first = 0.0
        self._loop = asyncio.get_running_loop()
        for number in STOPPING:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup
                signal.signal(number, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if not self.exit_code:
            self.exit_code, self._first = 128 + number, time.monotonic()
            self._loop.call_soon_threadsafe(self.requested.set)
            click.echo("Stopping: finished answers are kept. Once more to stop at once.", err=True)
        elif number == signal.SIGINT or time.monotonic() - self._first > ECHO_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
