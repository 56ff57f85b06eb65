"""What every way to a machine behind SSH can do; ssh.py makes a session of it."""

import re
import shlex
from collections.abc import Sequence
from typing import Protocol

from nemotron.transport.base import Done, TransportError
from nemotron.transport.sftp import Files

_READ_DIFFERENTLY = re.compile(r"[\n\r\\!]")
_PLAIN = re.compile(rb"[A-Za-z0-9 '_./:=,@+-]")


class NotSentError(TransportError):
    """The connection turned out broken before the command went out: it can be sent again."""


class NoRoomError(TransportError):
    """The server takes no more channels on this connection, which is as good as ever."""


class Line(Protocol):
    @property
    def is_alive(self) -> bool:
        """As far as is known without asking the other side."""

    def run(self, command: Sequence[str], stdin: bytes, timeout: float) -> Done: ...

    def files(self) -> Files:
        """A new SFTP session, for one thread at a time."""

    def close(self) -> None: ...


def command_line(command: Sequence[str]) -> str:
    """For the login shell that every command passes through on its way. It may be any: csh has no exit code 127, and
    csh and fish read some characters differently even inside quotes, so those travel as numbers."""
    line = f"exec {shlex.join(command)}"
    if _READ_DIFFERENTLY.search(line):
        numbers = "".join(_number(byte) for byte in line.encode("utf-8", "surrogateescape"))
        line = f'eval "$(printf %b "{numbers}")"'
    return f"exec sh -c {shlex.quote(line)}"


def _number(byte: int) -> str:
    character = bytes([byte])
    return character.decode() if _PLAIN.match(character) else f"\\0{byte:03o}"
