"""One command over one channel."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import paramiko

from nemotron.transport.base import Done

BROKEN = (paramiko.SSHException, EOFError, OSError)
"""What paramiko raises when a connection is gone."""
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
    close_channel(channel)
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
        close_channel(channel)

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    except BROKEN:
        if is_late.is_set():
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()
        timer.join()


def close_channel(channel: paramiko.Channel) -> None:
    """Also over a connection that is gone, where paramiko's own raises."""
    with suppress(*BROKEN):
        channel.close()


def _drain(receive: Callable[[int], bytes], into: bytearray) -> None:
    """To the end, or to the end of the connection: then there is no exit status."""
    with suppress(*BROKEN):
        while chunk := receive(CHUNK):
            into += chunk


def _feed(channel: paramiko.Channel, stdin: bytes) -> None:
    """As far as the command wants it."""
    with suppress(*BROKEN):
        channel.sendall(stdin)
        channel.shutdown_write()
