"""Output that outlives its reader: `| head`, a closed terminal, a full disk under a redirected log."""

import os
import sys
from typing import Any, TextIO, cast


class Lasting:
    """A text stream that falls silent once it cannot be written. A run does not end for want of a reader."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            self._fall_silent()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            self._fall_silent()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _fall_silent(self) -> None:
        """Below Python, because what the stream still holds is written again when the process ends."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)


def let_output_last() -> None:
    sys.stdout = cast(TextIO, Lasting(sys.stdout))
    sys.stderr = cast(TextIO, Lasting(sys.stderr))


def open_missing_streams() -> None:
    """After `>&-`: the first socket would take the number of the stream that is not there, and get what is printed."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))
