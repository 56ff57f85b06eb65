"""One command over one channel."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import paramiko

from nemotron.transport.base import Done

CHUNK = 1 << 16
NO_STATUS = -1
"""What a channel has for an exit status before it has one."""


def execute(channel: paramiko.Channel, line: str, stdin: bytes) -> Done:
    """Both streams are read at once: a command that fills one while the other is waited for would never end."""
    channel.exec_command(line)
    out, err = bytearray(), bytearray()
    others = [
        threading.Thread(target=_drain, args=(channel.recv_stderr, err), daemon=True),
        threading.Thread(target=_feed, args=(channel, stdin), daemon=True),
    ]
    for thread in others:
        thread.start()
    _drain(channel.recv, out)
    channel.status_event.wait()
    channel.close()
    for thread in others:
        thread.join()
    if channel.exit_status == NO_STATUS:
        raise EOFError("connection lost")
    return Done(channel.exit_status, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


@contextmanager
def closed_after(channel: paramiko.Channel, seconds: float) -> Iterator[None]:
    """Whatever waits for the channel then, and much in paramiko waits without a limit, sees it closed: TimeoutError."""
    is_late = threading.Event()

    def give_up() -> None:
        is_late.set()
        channel.close()

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (paramiko.SSHException, EOFError, OSError):
        if is_late.is_set():
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()
        timer.join()


def _drain(receive: Callable[[int], bytes], into: bytearray) -> None:
    while chunk := receive(CHUNK):
        into += chunk


def _feed(channel: paramiko.Channel, stdin: bytes) -> None:
    try:
        channel.sendall(stdin)
        channel.shutdown_write()
    except (OSError, EOFError, paramiko.SSHException):
        return  # the command wants no more, or is over
