"""What the fake cluster remembers between two commands: one JSON file, held by one process at a time."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FINAL = {
    "COMPLETED",
    "FAILED",
    "TIMEOUT",
    "CANCELLED",
    "OUT_OF_MEMORY",
    "NODE_FAIL",
    "PREEMPTED",
    "DEADLINE",
    "BOOT_FAIL",
}
EMPTY: dict[str, Any] = {
    "next_id": 1,
    "banner": "",
    "cluster": "",
    "controller": "up",
    "controller_seconds": 0.0,
    "accounting": "on",
    "max_submit": None,
    "runs": False,
    "kill_wait": 5.0,
    "minute": 60.0,
    "requeue_seconds": 0.2,
    "image_env": {},
    "says": [],
    "jobs": [],
}


@contextmanager
def opened(folder: Path) -> Iterator[dict[str, Any]]:
    """The state, written back when it has changed."""
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = folder / "state.json"
        state = json.loads(path.read_text()) if path.exists() else json.loads(json.dumps(EMPTY))
        before = json.dumps(state)
        yield state
        if json.dumps(state) != before:
            temporary = path.with_suffix(".new")
            temporary.write_text(json.dumps(state))
            temporary.replace(path)


def new_job(state: dict[str, Any], **known: Any) -> dict[str, Any]:
    number = known.pop("id", None) or state["next_id"]
    state["next_id"] = max(state["next_id"], number) + 1
    job = {
        "id": number,
        "user": "",
        "name": "",
        "state": "PENDING",
        "reason": "None",
        "restarts": 0,
        "submit": time.time(),
        "is_queued": True,
        "is_accounted": True,
        "by": "",
        "lives": [],
        "script_states": [],
        "options": {},
        "environ": {},
        "folder": "",
        "script": "",
        "pid": None,
        "asked": "",
        **known,
    }
    job["lives"] = job["lives"] or [new_life(job)]
    state["jobs"].append(job)
    return job


def new_life(job: dict[str, Any]) -> dict[str, Any]:
    return {"state": "PENDING", "exit": "0:0", "submit": job["submit"], "start": None, "end": None, "steps": {}}


def become(job: dict[str, Any], word: str, **facts: Any) -> None:
    """As the controller does: a job that waits again has begun another life, of which accounting gets a row."""
    life = job["lives"][-1]
    if word in ("PENDING", "REQUEUED", "REQUEUE_HOLD") and life["end"] is not None:
        job["restarts"] += 1
        job["lives"].append(life := new_life(job))
    job["state"] = word
    job["reason"] = facts.pop("reason", "None")
    if word == "COMPLETING":
        return
    life["state"] = word if word not in ("REQUEUE_HOLD",) else "PENDING"
    if word in ("RUNNING",) and life["start"] is None:
        life["start"] = time.time()
    if word in FINAL or (word == "REQUEUED" and life["start"] is not None):
        life["end"] = time.time()
    job["by"] = facts.pop("by", job["by"])
    life |= facts


def record(folder: Path, command: str, argv: list[str], stdin: str = "") -> None:
    line = json.dumps({"command": command, "argv": argv, "environ": dict(os.environ), "stdin": stdin})
    with (folder / "calls.jsonl").open("a") as file:
        file.write(line + "\n")
