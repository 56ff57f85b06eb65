"""A connection that somebody has opened already: the user's own `ssh`, with ControlMaster and ControlPath in its
configuration. Logins that want a second factor work through it, and nothing else is opened."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence

from nemotron.transport.base import Done, TransportError
from nemotron.transport.destination import Destination
from nemotron.transport.sftp import SECONDS, Files
from nemotron.transport.ssh_config import Hop
from nemotron.transport.ssh_config_file import other_config
from nemotron.transport.ssh_line import NotSentError, command_line
from nemotron.transport.ssh_process import SocketProcess

SSH_FAILED = 255
"""Exit code of ssh itself; a command may have it, too."""
CHECK_SECONDS = 10.0


def shared_line(destination: Destination, hop: Hop, environ: Mapping[str, str]) -> "SharedLine | None":
    ssh = shutil.which("ssh", path=environ.get("PATH"))
    if not hop.shares_connections or ssh is None:
        return None
    line = SharedLine([ssh, *_options(destination, environ)], hop, environ)
    return line if line.is_alive else None


def _options(destination: Destination, environ: Mapping[str, str]) -> list[str]:
    config = other_config(environ)
    said = {
        "-F": config and str(config),
        "-l": destination.user,
        "-p": destination.port and str(destination.port),
        "-i": destination.identity,
    }
    return [word for option, value in said.items() if value for word in (option, value)]


class SharedLine:
    def __init__(self, ssh: Sequence[str], hop: Hop, environ: Mapping[str, str]) -> None:
        self._ssh = ssh
        self._hop = hop
        self._environ = environ

    @property
    def is_alive(self) -> bool:
        """Asked anew each time, as the connection belongs to somebody else; it takes some milliseconds."""
        check = [*self._ssh, "-O", "check", "--", self._hop.name]
        try:
            done = subprocess.run(
                check, stdin=subprocess.DEVNULL, capture_output=True, env=self._environ, timeout=CHECK_SECONDS
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def run(self, command: Sequence[str], stdin: bytes, timeout: float) -> Done:
        if not self.is_alive:
            raise NotSentError(f"The shared connection to {self._hop} has ended.")
        line = self._command("-T", command_line(command))
        try:
            done = subprocess.run(line, input=stdin, capture_output=True, env=self._environ, timeout=timeout)
        except subprocess.TimeoutExpired:
            raise TransportError(f"{command[0]} on {self._hop} gave no answer within {timeout:.0f} s.") from None
        out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        if done.returncode == SSH_FAILED and not self.is_alive:
            raise TransportError(
                f"The shared connection to {self._hop} broke while {command[0]} ran there "
                f"({' '.join(err.split())[-300:] or 'connection lost'}): it may have run."
            )
        return Done(done.returncode, out, err)

    def files(self) -> Files:
        return Files(self._sftp, str(self._hop))

    def _sftp(self) -> "_ProcessStream":
        return _ProcessStream(SocketProcess(self._command("-s", "sftp"), self._environ))

    def _command(self, option: str, what: str) -> list[str]:
        """No question is ever asked, and no connection of ours is left for others."""
        quiet = ["-o", "BatchMode=yes", "-o", "ControlMaster=no"]
        return [*self._ssh, *quiet, option, "--", self._hop.name, what]

    def close(self) -> None:
        """It is not ours."""


class _ProcessStream:
    def __init__(self, process: SocketProcess) -> None:
        self._process = process
        process.stream.settimeout(SECONDS)

    def send(self, content: bytes) -> int:
        return self._process.stream.send(content)

    def recv(self, size: int) -> bytes:
        return self._process.stream.recv(size)

    def get_name(self) -> str:
        return "sftp"

    def close(self) -> None:
        self._process.close()
