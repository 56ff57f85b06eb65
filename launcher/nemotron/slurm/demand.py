"""What a job asks of a cluster, and what can be said against it before it is submitted."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Demand:
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    seconds: int | None = None
    cpus: int | None = None
    memory_mib: int | None = None
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class Objection:
    code: str
    """For programs: `time-limit`, `gpus`, `account-unknown`."""
    what: str
    action: str
    is_certain: bool = True
    """Slurm would refuse the job, or never start it."""


def in_words(seconds: int) -> str:
    """As Slurm writes it: `04:00:00`, `2-00:00:00`."""
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock
