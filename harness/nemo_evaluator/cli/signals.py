"""Ctrl-C and SIGTERM."""

import asyncio
import signal

import click


class StopOnSignal:
    """The first SIGINT or SIGTERM asks the run to finish its files, the second one ends the process at once."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.exit_code = 0
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(number, self._stop, number)

    def _stop(self, number: signal.Signals) -> None:
        self.exit_code = 128 + number
        self.requested.set()
        click.echo("Stopping: finished answers are kept. Once more to stop at once.", err=True)
        for each in (signal.SIGINT, signal.SIGTERM):
            self._loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
