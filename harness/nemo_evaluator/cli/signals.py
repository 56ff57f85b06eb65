"""Ctrl-C and SIGTERM."""

import asyncio
import signal
from types import FrameType

import click

STOPPING = (signal.SIGINT, signal.SIGTERM)


class StopOnSignal:
    """The first signal asks the run to finish its files, the second one ends the process at once.

    Plain signal handlers and not the event loop's: they also run while a scorer holds the loop.
    """

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.exit_code = 0
        self._loop = asyncio.get_running_loop()
        for number in STOPPING:
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        for each in STOPPING:
            signal.signal(each, signal.SIG_DFL)
        self.exit_code = 128 + number
        self._loop.call_soon_threadsafe(self.requested.set)
        click.echo("Stopping: finished answers are kept. Once more to stop at once.", err=True)
