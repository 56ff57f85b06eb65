"""What every machine can do for a launcher, here or behind a connection."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from nemotron.errors import SubmitError


class TransportError(SubmitError):
    """The machine cannot be reached, or the connection broke: what was asked may or may not have happened."""


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def said(self) -> str:
        """What it has to say for itself, on one line."""
        return " ".join((self.stderr.strip() or self.stdout.strip()).split())[:500]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder below another one."""

    path: str
    """Relative to the folder that was listed."""
    size: int
    modified: float
    """Seconds since the epoch, by the clock of the machine that has it."""
    is_folder: bool = False


class Session(Protocol):
    """All paths are absolute and the machine's own. File methods raise FileNotFoundError, PermissionError and other
    OSErrors as `open` does; whatever fails because the machine is out of reach raises TransportError."""

    name: str
    """For messages: `this machine`, `me@login.example.com`."""
    is_here: bool

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout: float = 60.0) -> Done:
        """No shell reads the arguments, and no profile is sourced. A command that is not there has code 127; one that
        takes longer than `timeout` seconds raises TransportError."""

    def write(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """Whole or not at all: a temporary file, which has its mode before its content, renamed. Makes the folders."""

    def read(self, path: str, offset: int = 0, size: int | None = None) -> bytes: ...

    def walk(self, folder: str) -> Iterator[Entry]:
        """Everything below `folder`, folders before their content; links are not followed."""

    def remove(self, path: str) -> None:
        """A file, or a folder with all that is in it; one that is not there is fine."""

    def close(self) -> None: ...
