"""One writer for each results folder: .nemotron-eval.lock names its owner, who renews it while it lives.

An owner on this machine is looked up among the processes. The job that a scheduler restarts finds its own claim, and
takes it back; a second step of the same job on another node does not, while the first one's heart beats. Any other
claim holds for five minutes after its last heartbeat; then it is stale, and resume takes it.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any, Mapping

from nemo_evaluator.direct.atomic import read_json, write_json
from nemo_evaluator.direct.errors import Refused, StorageFailed

NAME = ".nemotron-eval.lock"
HEARTBEAT_SECONDS = 10.0
SILENT_SECONDS = 3 * HEARTBEAT_SECONDS
"""Of an owner in the same job: it has been killed, whatever the scheduler says about restarts."""
STALE_SECONDS = 300.0
JOB_VARIABLES = {"SLURM_JOB_ID": "slurm", "LEPTON_JOB_NAME": "lepton", "RUNAI_JOB_NAME": "runai"}


def job_id(environ: Mapping[str, str]) -> str | None:
    """What a scheduler calls this job, the same after it was restarted."""
    for variable, scheduler in JOB_VARIABLES.items():
        if environ.get(variable):
            cluster = environ.get("SLURM_CLUSTER_NAME", "") if scheduler == "slurm" else ""
            return ":".join(filter(None, (scheduler, cluster, environ[variable])))
    return None


def restarts(environ: Mapping[str, str]) -> int:
    """How often a scheduler has started this job again."""
    count = environ.get("SLURM_RESTART_COUNT", "")
    return int(count) if count.isdecimal() else 0


def check_claim(folder: Path, job: str | None, resume: bool, restarted: int = 0) -> None:
    """Raises Refused while somebody else may be writing here."""
    _judge(read_json(folder / NAME), folder, job, resume, restarted)


def _judge(owner: Mapping[str, Any], folder: Path, job: str | None, resume: bool, restarted: int) -> None:
    if not owner:
        return
    who = f"process {owner.get('pid')} on {owner.get('host')}" + (f" (job {owner['job']})" if owner.get("job") else "")
    if owner.get("machine") == _machine():
        if _is_running(owner):
            raise Refused(
                f"{folder} is being written by {who}: wait for it, stop it, or choose a new EVAL_RESULTS_DIR."
            )
        return
    heartbeat = owner.get("heartbeat_unix")
    silent = time.time() - (heartbeat if isinstance(heartbeat, (int, float)) else 0)
    if job is not None and owner.get("job") == job and (_is_earlier(owner, restarted) or silent > SILENT_SECONDS):
        return
    if silent <= STALE_SECONDS:
        raise Refused(
            f"{folder} is claimed by {who}, last heard of {max(0, int(silent))} s ago: wait for it, stop it, "
            "or choose a new EVAL_RESULTS_DIR."
        )
    if not resume:
        raise Refused(
            f"{folder} has a stale claim of {who}, silent for {int(silent)} s: if that run is dead, "
            "continue it with resume=true."
        )


def _is_earlier(owner: Mapping[str, Any], restarted: int) -> bool:
    """A life of this job that the scheduler has ended. Only Slurm counts lives; on other platforms a job has one
    process at a time."""
    before = owner.get("restarts", 0)
    return not str(owner.get("job")).startswith("slurm:") or (isinstance(before, int) and restarted > before)


class Claim:
    """Taken by the constructor (or Refused), renewed by a thread of its own, given back on leaving the context."""

    def __init__(
        self,
        folder: Path,
        job: str | None,
        resume: bool,
        restarted: int = 0,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        self._path = folder / NAME
        self._period = heartbeat_seconds
        self._lock = threading.Lock()
        previous = read_json(self._path)
        _judge(previous, folder, job, resume, restarted)
        _end_orphan(previous)
        self._owner: dict[str, Any] = {
            "pid": os.getpid(),
            "pid_started": process_start(os.getpid()),
            "host": socket.gethostname(),
            "machine": _machine(),
            "job": job,
            "restarts": restarted,
            "started": _now(),
            "child": None,
        }
        self._take(previous)
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()

    def note_child(self, pid: int | None) -> None:
        """So that a successor can end a harness that outlived us."""
        self._owner["child"] = None if pid is None else {"pid": pid, "pid_started": process_start(pid)}
        self._renew()

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._released.set()
        self._thread.join()
        if self._is_mine():
            self._path.unlink()

    def _take(self, previous: dict[str, Any]) -> None:
        """The lock appears with its content, or not at all; who comes second is refused."""
        draft = self._path.with_name(f"{NAME}.{os.getpid()}.tmp")
        write_json(draft, self._content())
        try:
            if self._path.exists() and read_json(self._path) == previous:
                self._path.unlink()  # its owner was found dead, stale, or to be this very job
            os.link(draft, self._path)
        except FileExistsError as error:
            raise Refused(f"{self._path.parent} was claimed by another run just now: wait for it.") from error
        except OSError:
            draft.replace(self._path)  # a file system without hard links
        finally:
            draft.unlink(missing_ok=True)

    def _content(self) -> dict[str, Any]:
        return {**self._owner, "heartbeat": _now(), "heartbeat_unix": time.time()}

    def _renew(self) -> None:
        with self._lock:
            write_json(self._path, self._content())

    def _is_mine(self) -> bool:
        owner = read_json(self._path)
        return all(owner.get(key) == self._owner[key] for key in ("pid", "pid_started", "machine"))

    def _beat(self) -> None:
        while not self._released.wait(self._period):
            if self._is_lost():
                os.kill(os.getpid(), signal.SIGTERM)  # what we write from here on would spoil the successor's
                return
            with suppress(StorageFailed):  # a full disk is reported by the files that matter
                self._renew()

    def _is_lost(self) -> bool:
        """True when we were frozen for so long that somebody took the folder over. A missing lock is only renewed."""
        return bool(read_json(self._path)) and not self._is_mine()


def process_start(pid: int) -> str | None:
    """When the process started, in the kernel's ticks; None if there is no such process, or no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def _is_running(process: Mapping[str, Any]) -> bool:
    pid = process.get("pid")
    if not isinstance(pid, int) or pid <= 0:
        return False
    if Path("/proc/self/stat").exists():
        return process_start(pid) is not None and process_start(pid) == process.get("pid_started")
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _end_orphan(owner: dict[str, Any]) -> None:
    """A killed runner could not stop its harness: two of them in one folder would spoil it."""
    child = owner.get("child")
    if isinstance(child, dict) and owner.get("machine") == _machine() and _is_running(child):
        os.killpg(child["pid"], signal.SIGKILL)


def _machine() -> str:
    """Host, boot and process namespace: inside these a process id means one process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return ":".join((socket.gethostname(), boot, os.readlink("/proc/self/ns/pid")))
    except OSError:
        return socket.gethostname()


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
