"""One writer for each results folder, without file locks: network file systems break those.

A claim is a file that names its owner, appears at once (as a hard link) and is touched every few seconds. An owner on
the same machine is looked up among its processes; any other is alive if its file is seen to be touched.
"""

import errno
import json
import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from nemo_evaluator.errors import RunFailed, UsageError

NAME = ".nel-claim"
HEARTBEAT_SECONDS = 5.0
HAS_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS})
SILENT_SECONDS = 60.0
"""A claim untouched for this long is dead; a younger one is watched for three heartbeats."""


def refuse_claimed(folder: Path) -> None:
    """Raises UsageError while another run holds `folder`."""
    path = folder / NAME
    if path.exists():
        _refuse_living(path, _read(path), HEARTBEAT_SECONDS)


class Claim:
    """Taken by the constructor, given back by `release`. Raises UsageError while another run holds it."""

    def __init__(self, folder: Path, heartbeat_seconds: float = HEARTBEAT_SECONDS) -> None:
        self.path = folder / NAME
        self._owner = _me()
        self._period = heartbeat_seconds
        self._take()
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="claim", daemon=True)
        self._thread.start()

    def release(self) -> None:
        self._released.set()
        self._thread.join()
        if _read(self.path) == self._owner:  # else we were silent for so long that somebody took it
            self.path.unlink(missing_ok=True)

    def _take(self) -> None:
        """Written elsewhere and then linked, the claim appears whole or not at all."""
        mine = self.path.with_name(f"{NAME}.{secrets.token_hex(4)}")
        try:
            mine.write_text(json.dumps(self._owner))
            while not _link(mine, self.path):
                owner = _read(self.path)
                _refuse_living(self.path, owner, self._period)
                if self._replace_dead(owner, mine):
                    return
        except OSError as error:
            raise RunFailed(
                f"Cannot write {self.path}: {error.strerror}. Make room, then run again with --resume."
            ) from error
        finally:
            mine.unlink(missing_ok=True)

    def _replace_dead(self, dead: dict[str, Any], mine: Path) -> bool:
        """Of many that find the same dead owner one takes its place: whoever holds the second lock meanwhile."""
        lock = self.path.with_name(f"{NAME}.takeover")
        if not _link(mine, lock):
            touched = _touched_at(lock)
            if touched is not None and time.time() - touched > SILENT_SECONDS:
                lock.unlink(missing_ok=True)  # killed in these few milliseconds
            time.sleep(0.01)
            return False
        try:
            is_dead = _read(self.path) == dead
            if is_dead:
                mine.replace(self.path)
            return is_dead
        finally:
            lock.unlink()

    def _beat(self) -> None:
        while not self._released.wait(self._period):
            with suppress(OSError):  # storage that stumbles; the next beat tries again
                os.utime(self.path)


def _link(source: Path, target: Path) -> bool:
    """False if `target` is there already."""
    try:
        target.hardlink_to(source)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in HAS_NO_LINKS:
            raise
        return create(target, source.read_bytes())
    return True


def create(target: Path, content: bytes) -> bool:
    """For file systems without hard links. False if `target` is there already."""
    try:
        with target.open("xb") as file:
            file.write(content)
    except FileExistsError:
        return False
    return True


def _refuse_living(path: Path, owner: dict[str, Any], period: float) -> None:
    if _is_alive(path, owner, period):
        raise UsageError(
            f"{path.parent} is being written by process {owner.get('pid')} on {owner.get('host')}: "
            "wait for it, stop it, or choose another output folder."
        )


def _is_alive(path: Path, owner: dict[str, Any], period: float) -> bool:
    me = _me()
    if owner.get("machine") == me["machine"]:
        return process_start(int(owner.get("pid", 0))) == owner.get("started")
    if owner.get("job") and owner["job"] == me["job"] and owner.get("restarts") != me["restarts"]:
        return False  # the scheduler restarted this very job: what it left behind is its own
    return _is_touched(path, period)


def _is_touched(path: Path, period: float) -> bool:
    first = _touched_at(path)
    if first is None or time.time() - first > SILENT_SECONDS:
        return False
    deadline = time.monotonic() + 3 * period
    while time.monotonic() < deadline:
        time.sleep(period / 5)
        if _touched_at(path) not in (None, first):
            return True
    return False


def _touched_at(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return None


def _me() -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "started": process_start(os.getpid()),
        "host": socket.gethostname(),
        "machine": _machine(),
        "job": os.environ.get("SLURM_JOB_ID"),
        "restarts": os.environ.get("SLURM_RESTART_COUNT", "0"),
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
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def _read(path: Path) -> dict[str, Any]:
    try:
        owner = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return owner if isinstance(owner, dict) else {}
