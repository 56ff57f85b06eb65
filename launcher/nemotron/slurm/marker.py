"""What a job's own batch step says of it, on shared storage: it is there when accounting is late, purged or absent."""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Marker:
    job_id: str
    restarts: int
    """How often Slurm had started the job again by then."""
    is_over: bool
    """False from its start on, and again after a restart."""
    exit_code: int | None
    """The runner's, once it is over."""
    reason: str
    """One line, where there is more to say than the exit code."""
    updated: float
    """Seconds since the epoch."""


def parse_marker(content: bytes) -> Marker | None:
    """None for what is no marker, such as half a file on a full disk."""
    try:
        said = json.loads(content)
        return Marker(
            str(said["job_id"]),
            int(said["restarts"]),
            bool(said["is_over"]),
            None if said["exit_code"] is None else int(said["exit_code"]),
            str(said["reason"]),
            float(said["updated"]),
        )
    except (ValueError, KeyError, TypeError):
        return None
