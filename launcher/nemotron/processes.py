"""Which process is which: numbers are used again, so a number alone does not name one."""

import os
import subprocess
from pathlib import Path


def started(pid: int | str) -> str | None:
    """When process `pid` began, in the system's own terms; None if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except FileNotFoundError:
        return None if Path("/proc/self/stat").exists() else _started_by_ps(pid)
    except ProcessLookupError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def signal_process(pid: int, start: str, number: int) -> bool:
    """False when that process has ended already."""
    if started(pid) != start:
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _started_by_ps(pid: int | str) -> str | None:
    """Where there is no /proc."""
    done = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True)
    return done.stdout.strip() or None
