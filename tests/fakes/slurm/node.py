"""Runs one job of the fake cluster: `python -c … FOLDER ID`, a process of its own from sbatch to the job's end."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.fakes.slurm.state import become, opened

TICK = 0.05
WAITS_AGAIN = {"requeue": "REQUEUED", "preempt": "PREEMPTED", "fail_node": "NODE_FAIL"}
ENDS = {"cancel": "CANCELLED", "timeout": "TIMEOUT", "oom": "OUT_OF_MEMORY"}


def main() -> None:
    folder, number = Path(sys.argv[1]), int(sys.argv[2])
    while life(folder, number):
        pass


def life(folder: Path, number: int) -> bool:
    """From waiting to its end; whether the job waits again after it."""
    with opened(folder) as state:
        knobs = {key: state[key] for key in ("kill_wait", "minute")}
        job = find(state, number)
        if job["state"] == "CANCELLED":
            return False
        become(job, "RUNNING")
        child = start(folder, job)
        job["pid"], job["asked"] = (child.pid, "") if child else (None, "")
    if child is None:
        with opened(folder) as state:
            become(find(state, number), "FAILED", exit="0:53")
        return False
    asked = watch(folder, number, child, knobs)
    return conclude(folder, number, child.returncode, asked)


def find(state: dict[str, Any], number: int) -> dict[str, Any]:
    job: dict[str, Any] = [job for job in state["jobs"] if job["id"] == number][-1]
    return job


def start(folder: Path, job: dict[str, Any]) -> subprocess.Popen[bytes] | None:
    """The script, its output where the job asked for it; None where that folder is not there, as on a real node."""
    script = folder / f"slurm_script_{job['id']}"
    script.write_text(job["script"])
    script.chmod(0o700)
    asked = job["options"]
    name = asked.get("--output", "slurm-%j.out").replace("%j", str(job["id"])).replace("%x", job["name"])
    output = Path(job["folder"]) / name
    mode = "ab" if asked.get("--open-mode", "truncate") == "append" else "wb"
    own = {
        "SLURM_JOB_ID": str(job["id"]),
        "SLURM_JOBID": str(job["id"]),
        "SLURM_JOB_NAME": job["name"],
        "SLURM_JOB_USER": job["user"],
        "SLURM_RESTART_COUNT": str(job["restarts"]),
        "SLURM_JOB_NODELIST": "n1",
        "SLURM_NODEID": "0",
        "SLURM_PROCID": "0",
        "SLURM_SUBMIT_DIR": job["folder"],
    }
    if not job["restarts"]:
        del own["SLURM_RESTART_COUNT"]
    try:
        with output.open(mode) as log:
            return subprocess.Popen(
                [str(script)],
                cwd=job["folder"],
                env=job["environ"] | own,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    except FileNotFoundError:
        return None


def watch(folder: Path, number: int, child: subprocess.Popen[bytes], knobs: dict[str, float]) -> str:
    """Until it has ended; what was asked of it meanwhile, "" for nothing."""
    began, ended_by, warned = time.monotonic(), "", False
    with opened(folder) as state:
        asked = find(state, number)["options"]
    limit = minutes(asked.get("--time")) * knobs["minute"]
    batch, warning, early = warning_of(asked.get("--signal", ""), knobs["minute"])
    while child.poll() is None:
        time.sleep(TICK)
        spent = time.monotonic() - began
        if warning and not warned and spent > limit - early:
            warned = True
            send(child, warning, is_batch=batch)
        request = "timeout" if spent > limit else take(folder, number, ended_by)
        if request.startswith("signal "):
            send(child, getattr(signal, f"SIG{request.split()[1]}"), is_batch=True)
        elif request:
            ended_by = request
            with opened(folder) as state:
                become(find(state, number), "COMPLETING")
            end(child, request, knobs["kill_wait"])
    return ended_by or take(folder, number, "")


def take(folder: Path, number: int, already: str) -> str:
    with opened(folder) as state:
        job = find(state, number)
        request, job["asked"] = job["asked"], ""
    return "" if already else request


def end(child: subprocess.Popen[bytes], request: str, kill_wait: float) -> None:
    if request not in ("oom", "fail_node"):
        send(child, signal.SIGCONT)
        send(child, signal.SIGTERM)
        deadline = time.monotonic() + kill_wait
        while child.poll() is None and time.monotonic() < deadline:
            time.sleep(TICK)
    send(child, signal.SIGKILL)
    child.wait()


def send(child: subprocess.Popen[bytes], number: signal.Signals, *, is_batch: bool = False) -> None:
    """To the step's every process, or to the script alone."""
    with suppress(ProcessLookupError):
        os.kill(child.pid, number) if is_batch else os.killpg(child.pid, number)


def conclude(folder: Path, number: int, code: int, asked: str) -> bool:
    with opened(folder) as state:
        job, seconds = find(state, number), state["requeue_seconds"]
        job["pid"] = None
        exit_code = f"{code}:0" if code >= 0 else f"0:{-code}"
        job["lives"][-1]["steps"] = {"batch": "CANCELLED" if asked else "COMPLETED" if code == 0 else "FAILED"}
        may_wait = asked == "requeue" or "--no-requeue" not in job["options"]
        if asked in WAITS_AGAIN and may_wait:
            become(job, WAITS_AGAIN[asked], exit=exit_code)
            become(job, "PENDING", reason="BeginTime")
        elif asked in WAITS_AGAIN:
            become(job, WAITS_AGAIN[asked], exit=exit_code)
            return False
        else:
            word = ENDS.get(asked) or ("COMPLETED" if code == 0 else "FAILED")
            become(job, word, exit=exit_code, **({"by": str(os.getuid())} if asked == "cancel" else {}))
            return False
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not is_cancelled(folder, number):
        time.sleep(TICK)
    return True


def is_cancelled(folder: Path, number: int) -> bool:
    with opened(folder) as state:
        return bool(find(state, number)["state"] == "CANCELLED")


def minutes(text: str | None) -> float:
    if not text or text == "UNLIMITED":
        return float("inf")
    days, _, rest = text.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if days or len(parts) == 3:
        hours, minute, second = (*parts, 0, 0)[:3]
        return int(days or 0) * 1440 + hours * 60 + minute + second / 60
    minute, second = (*parts, 0)[:2]
    return minute + second / 60


def warning_of(text: str, minute: float) -> tuple[bool, signal.Signals | None, float]:
    """`B:USR1@60`: whether to the script alone, which signal, how long before the limit."""
    match = re.fullmatch(r"(?:([BR]+):)?([A-Z0-9]+)(?:@(\d+))?", text)
    if match is None:
        return False, None, 0.0
    name = match[2]
    number = signal.Signals(int(name)) if name.isdigit() else signal.Signals[f"SIG{name.removeprefix('SIG')}"]
    return "B" in (match[1] or ""), number, int(match[3] or 60) * minute / 60
