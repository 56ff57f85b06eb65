"""One writer for each results folder, without file locks: network file systems break those.

A claim is a file made with O_EXCL that names its owner and is touched every few seconds. An owner on the same machine
is looked up among its processes; any other is alive if its file is seen to be touched.
"""

import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

from nemo_evaluator.errors import UsageError

HEARTBEAT_SECONDS = 5.0
SILENT_SECONDS = 60.0
"""A claim untouched for this long is dead; a younger one is watched for three heartbeats."""


class Claim:
    """Taken by the constructor, given back by `release`. Raises UsageError while another run holds it."""

    def __init__(self, folder: Path, heartbeat_seconds: float = HEARTBEAT_SECONDS) -> None:
        self.path = folder / ".nel-claim"
        self._period = heartbeat_seconds
        self._take()
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="claim", daemon=True)
        self._thread.start()

    def release(self) -> None:
        self._released.set()
        self._thread.join()
        self.path.unlink(missing_ok=True)

    def _take(self) -> None:
        while not self._create():
            owner = _read(self.path)
            if self._is_alive(owner):
                raise UsageError(
                    f"{self.path.parent} is being written by process {owner.get('pid')} on {owner.get('host')}: "
                    "wait for it, stop it, or choose another output folder."
                )
            self.path.unlink(missing_ok=True)

    def _create(self) -> bool:
        try:
            fd = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            return False
        with os.fdopen(fd, "w") as file:
            json.dump(_me(), file)
        return True

    def _is_alive(self, owner: dict[str, Any]) -> bool:
        me = _me()
        if owner.get("job") and owner["job"] == me["job"]:
            return False  # the scheduler restarted this very job: what it left behind is its own
        if owner.get("machine") == me["machine"]:
            return process_start(int(owner.get("pid", 0))) == owner.get("started")
        return self._is_touched()

    def _is_touched(self) -> bool:
        first = self._touched_at()
        if first is None or time.time() - first > SILENT_SECONDS:
            return False
        deadline = time.monotonic() + 3 * self._period
        while time.monotonic() < deadline:
            time.sleep(self._period / 5)
            if self._touched_at() not in (None, first):
                return True
        return False

    def _touched_at(self) -> float | None:
        try:
            return self.path.stat().st_mtime
        except FileNotFoundError:
            return None

    def _beat(self) -> None:
        while not self._released.wait(self._period):
            if self.path.exists():
                os.utime(self.path)


def _me() -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "started": process_start(os.getpid()),
        "host": socket.gethostname(),
        "machine": _machine(),
        "job": os.environ.get("SLURM_JOB_ID"),
    }


def _machine() -> str:
    """Host, boot and process namespace: inside these a process id means one process."""
    try:
        return ":".join(
            (
                socket.gethostname(),
                Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
                str(Path("/proc/self/ns/pid").readlink()),
            )
        )
    except OSError:
        return socket.gethostname()


def process_start(pid: int) -> str | None:
    """When the process started, in the kernel's ticks; None if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def _read(path: Path) -> dict[str, Any]:
    try:
        owner = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return owner if isinstance(owner, dict) else {}
