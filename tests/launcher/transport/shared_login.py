"""A connection that a user's own ssh has opened and shares."""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass
class SharedLogin:
    config: Path
    host: str
    master: subprocess.Popen[bytes]

    @property
    def is_open(self) -> bool:
        check = ["ssh", "-F", str(self.config), "-O", "check", self.host]
        return subprocess.run(check, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0

    def end(self) -> None:
        self.master.kill()
        self.master.wait()


@contextmanager
def shared_login(config: Path, host: str) -> Iterator[SharedLogin]:
    """`config` names no ControlPath; the one of the login does, and includes it. A socket's path has to be short."""
    with tempfile.TemporaryDirectory(prefix="nel-") as folder:
        own = Path(folder, "config")
        own.write_text(f"ControlPath {folder}/%n-%r-%p\nInclude {config}\n")
        command = ["ssh", "-F", str(own), "-M", "-N", host]
        login = SharedLogin(own, host, subprocess.Popen(command, stdin=subprocess.DEVNULL))
        try:
            deadline = time.monotonic() + 180
            while not login.is_open:
                assert time.monotonic() < deadline and login.master.poll() is None
                time.sleep(0.05)
            yield login
        finally:
            login.end()
