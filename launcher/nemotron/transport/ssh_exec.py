"""One command over one channel."""

import shlex
import threading
import time
from collections.abc import Callable, Sequence

import paramiko

from nemotron.transport.base import Done, TransportError

CHUNK = 1 << 16


def execute(channel: paramiko.Channel, command: Sequence[str], stdin: bytes, timeout: float, place: str) -> Done:
    """Both streams are read at once: a command that fills one while the other is waited for would never end."""
    deadline = time.monotonic() + timeout
    channel.settimeout(timeout)
    try:
        channel.exec_command(shlex.join(command))
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise TransportError(f"{place} did not take the command {command[0]}: {error or 'connection lost'}.") from None
    out, err = bytearray(), bytearray()
    workers = [
        threading.Thread(target=_drain, args=(channel.recv, out), daemon=True),
        threading.Thread(target=_drain, args=(channel.recv_stderr, err), daemon=True),
        threading.Thread(target=_feed, args=(channel, stdin), daemon=True),
    ]
    for worker in workers:
        worker.start()
    channel.status_event.wait(timeout)
    for worker in workers[:2]:
        worker.join(max(0.0, deadline - time.monotonic()))
    is_late = any(worker.is_alive() for worker in workers[:2])
    channel.close()
    for worker in workers:
        worker.join()
    if is_late or (channel.exit_status == -1 and time.monotonic() >= deadline):
        raise TransportError(f"{command[0]} on {place} gave no answer within {timeout:.0f} s.")
    if channel.exit_status == -1:
        raise TransportError(
            f"The connection to {place} broke while {command[0]} ran there; it may have done its work."
        )
    return Done(channel.exit_status, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def _drain(receive: Callable[[int], bytes], into: bytearray) -> None:
    try:
        while chunk := receive(CHUNK):
            into += chunk
    except OSError:
        return  # late: who waits sees that


def _feed(channel: paramiko.Channel, stdin: bytes) -> None:
    try:
        channel.sendall(stdin)
        channel.shutdown_write()
    except (OSError, EOFError, paramiko.SSHException):
        return  # the command did not want it, or is over
