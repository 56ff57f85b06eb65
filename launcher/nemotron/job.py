"""The nouns of the submitting side. No I/O, and no imports from siblings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True)
class Resources:
    """What a job asks of its backend; None leaves it to the backend."""

    cpus: float | None = None
    memory_mib: int | None = None
    shared_memory_mib: int | None = None
    gpus: int = 0
    time_limit_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Mount:
    source: str
    target: str
    is_read_only: bool = False

    def __str__(self) -> str:
        return f"{self.source}:{self.target}" + (":ro" if self.is_read_only else "")


@dataclass(frozen=True, slots=True)
class Job:
    """One job, complete but for the values of its secrets."""

    name: str
    """At most 35 characters of a-z, 0-9 and `-`, which every backend takes."""
    plan: Mapping[str, Any]
    """The content of plan.json; schema nemo_evaluator/schemas/plan.schema.json."""
    output_dir: str
    """Absolute, and the same path inside a container."""
    runner: bytes = field(repr=False, default=b"")
    """A zip application: `python runner.pyz plan.json`."""
    image: str | None = None
    """What the container engine is given, digest included; None runs in the environment at hand."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables for the job that may be read by anyone."""
    secrets: tuple[str, ...] = ()
    """Names of further variables; their values are looked up when the job is started."""
    resources: Resources = Resources()
    mounts: tuple[Mount, ...] = ()
    rebuilds_squash: bool = False
    """Make the .sqsh of the image anew, where the backend uses one."""


@dataclass(frozen=True, slots=True)
class Submission:
    """How a backend finds a job again: goes to disk, so it holds no secret."""

    backend: str
    job_id: str
    """The backend's own: a process, a container, a Slurm job."""
    details: Mapping[str, str] = field(default_factory=dict)
    """What else the executor wants to remember."""


class Phase(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    """Preempted, out of time or cancelled: what it finished is kept, and resume=true goes on."""
    UNKNOWN = "unknown"
    """The backend does not say; not final."""

    @property
    def is_final(self) -> bool:
        return self in (Phase.COMPLETED, Phase.FAILED, Phase.STOPPED)


@dataclass(frozen=True, slots=True)
class JobState:
    phase: Phase
    exit_code: int | None = None
    """Of the runner: 0 all ok, 1 a task failed, 2 refused, 75 stopped, 130 stopped by Ctrl-C."""
    reason: str = ""
    """One line for a person, when there is more to say than the phase."""
    restarts: int = 0
    """How often its backend has started it again."""

    @classmethod
    def of_exit(cls, exit_code: int) -> "JobState":
        """143 is a SIGTERM that came before the runner listened."""
        phases = {0: Phase.COMPLETED, 75: Phase.STOPPED, 130: Phase.STOPPED, 143: Phase.STOPPED}
        return cls(phases.get(exit_code, Phase.FAILED), exit_code)
