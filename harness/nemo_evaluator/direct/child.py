"""One harness process with everything it starts, in a process group of its own: started, copied from, stopped."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from typing import Callable, Mapping

from nemo_evaluator.direct.signals import Stop

GRACE_SECONDS = 20.0
"""Between asking and killing; schedulers kill everything 30 seconds after their own SIGTERM."""
DRAIN_SECONDS = 3.0
"""For output still in the pipe when the harness has ended; a process that left the group could hold it for ever."""
TICK_SECONDS = 0.5
READ_BYTES = 1 << 16


def run_child(
    argv: list[str],
    environ: Mapping[str, str],
    output: Callable[[bytes], None],
    stop: Stop,
    started: Callable[[int], None],
    tick: Callable[[], None],
    grace: float = GRACE_SECONDS,
) -> int:
    """The exit code, as a shell would tell it; output goes to `output` as it appears."""
    process = subprocess.Popen(
        argv,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    ending = Ending(process, stop, grace)
    try:
        started(process.pid)
        while process.poll() is None:
            _copy(pipe, [stop.reader], output, TICK_SECONDS)
            ending.press()
            tick()
        ending.kill_group()
        _drain(pipe, output)
    finally:
        ending.kill_group()
        process.wait()
        process.stdout.close()
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


class Ending:
    """SIGTERM to the group when told to stop; SIGKILL after the grace, or at once when told again."""

    def __init__(self, process: subprocess.Popen[bytes], stop: Stop, grace: float) -> None:
        self._process = process
        self._stop = stop
        self._grace = grace
        self._asked: float | None = None

    def press(self) -> None:
        if not self._stop.is_requested:
            return
        if self._asked is None:
            self._asked = time.monotonic()
            self._signal(signal.SIGTERM)
        elif self._stop.hurries or time.monotonic() - self._asked > self._grace:
            self.kill_group()

    def kill_group(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        # Nobody may be left; on some systems a group of zombies may not be signalled.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _copy(pipe: int, wake: list[int], output: Callable[[bytes], None], seconds: float) -> bool:
    """One read of what is there, or a wait for it; false at the end of the output."""
    ready = select.select([pipe, *wake], [], [], seconds)[0]
    if pipe not in ready:
        if ready:
            time.sleep(TICK_SECONDS / 10)  # the signal stays readable: do not spin
        return True
    data = os.read(pipe, READ_BYTES)
    if data:
        output(data)
    else:
        time.sleep(TICK_SECONDS / 10)  # closed by a harness that lives on
    return bool(data)


def _drain(pipe: int, output: Callable[[bytes], None]) -> None:
    deadline = time.monotonic() + DRAIN_SECONDS
    while time.monotonic() < deadline and _copy(pipe, [], output, 0.1):
        pass
