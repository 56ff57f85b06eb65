"""A command with a socket for its standard input and output."""

import contextlib
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence

SECONDS_TO_END = 2.0


class SocketProcess:
    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        with contextlib.ExitStack() as opened:
            self.stream, theirs = socket.socketpair()
            opened.callback(self.stream.close)
            self._said = opened.enter_context(tempfile.TemporaryFile())
            with theirs:
                self._process = subprocess.Popen(
                    command, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=self._said, env=environ
                )
            opened.pop_all()

    @property
    def said(self) -> str:
        """The end of what it wrote on standard error, on one line."""
        self._said.seek(0)
        return " ".join(self._said.read().decode("utf-8", "replace").split())[-300:]

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self.stream.close()
        self._process.terminate()
        try:
            self._process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()
