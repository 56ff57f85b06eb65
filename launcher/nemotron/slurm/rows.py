"""The tables of squeue and sacct, as rows with names. What is no row, such as a site's greeting, is passed over."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nemotron.slurm.job_ref import JobRef

SQUEUE_COLUMNS = {
    "JobID": 24,
    "State": 24,
    "UserName": 64,
    "RestartCnt": 12,
    "exit_code": 12,
    "SubmitTime": 24,
    "EndTime": 24,
    "Reason": 160,
    "Name": 128,
}
"""Width of each: squeue cuts what is longer, and fills up what is shorter."""
SQUEUE_FORMAT = ",".join(f"{name}:{width}" for name, width in SQUEUE_COLUMNS.items())
SACCT_FORMAT = "JobIDRaw,State,ExitCode,User,Submit,Start,End,Reason,JobName"
"""The name comes last: it is the one word that may hold a separator."""
WAITING = frozenset(
    {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
)
COMPLETING = "COMPLETING"
ACTIVE = frozenset({"RUNNING", COMPLETING, "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"})
NAMELESS = "allocation"
"""How accounting calls a job in the first seconds of its first life."""
EARLIER_SECONDS = 3600.0
"""A job that was submitted so much before ours is another one with its number, whatever the clocks say."""
_JOB = re.compile(r"\d+")
_STEP = re.compile(r"(\d+)\.\S+")


@dataclass(frozen=True, slots=True)
class Queued:
    """A job as the controller knows it, until some minutes after its end."""

    job_id: str
    state: str
    """In Slurm's long form: PENDING, COMPLETING, OUT_OF_MEMORY."""
    user: str
    restarts: int
    exit_code: int
    signal: int
    submitted: float | None
    """Seconds since the epoch."""
    ended: float | None
    reason: str
    name: str

    @property
    def is_at_work(self) -> bool:
        return self.state in WAITING | ACTIVE and not self.is_completing

    @property
    def is_completing(self) -> bool:
        """Over but for the tidying up; how it ended is not shown meanwhile, nor whether it will be started again."""
        return self.state == COMPLETING

    def as_life(self) -> "Accounted":
        """Of a job that has ended, where accounting has nothing."""
        return Accounted(
            self.job_id,
            self.state,
            "",
            self.exit_code,
            self.signal,
            self.user,
            self.submitted,
            self.submitted,
            self.ended,
            self.reason,
            self.name,
        )


@dataclass(frozen=True, slots=True)
class Accounted:
    """One life of a job in accounting: a job that was started again has several."""

    job_id: str
    state: str
    by: str
    """Whoever cancelled it, as far as accounting says."""
    exit_code: int
    signal: int
    user: str
    submitted: float | None
    started: float | None
    ended: float | None
    reason: str
    name: str
    steps: tuple[str, ...] = ()
    """States of its steps: one of them may know what the job does not."""

    @property
    def has_started(self) -> bool:
        """A job that was cancelled while it waited may have its end for a start."""
        return self.started is not None and (bool(self.steps) or self.started != self.ended)


def is_job(row: Queued | Accounted, ref: JobRef) -> bool:
    """A number alone does not say: clusters use theirs again."""
    if (row.job_id, row.user) != (ref.job_id, ref.user) or row.name not in (ref.name, NAMELESS):
        return False
    return row.submitted is None or row.submitted > ref.submitted - EARLIER_SECONDS


def queued(text: str) -> Iterator[Queued]:
    for line in text.splitlines():
        cells = dict(_cut(line))
        if _JOB.fullmatch(cells["JobID"]) and cells["State"].isupper():
            yield Queued(
                cells["JobID"],
                cells["State"],
                cells["UserName"],
                int(_number(cells["RestartCnt"]) or 0),
                *_code(cells["exit_code"]),
                _number(cells["SubmitTime"]),
                _number(cells["EndTime"]),
                "" if cells["Reason"] == "None" else cells["Reason"],
                cells["Name"],
            )


def accounted(text: str) -> Iterator[Accounted]:
    lives: list[tuple[list[str], list[str]]] = []
    for line in text.splitlines():
        cells = line.split("|", SACCT_FORMAT.count(","))
        if len(cells) <= SACCT_FORMAT.count(","):
            continue
        if _JOB.fullmatch(cells[0]):
            lives.append((cells, []))
        elif lives and (step := _STEP.fullmatch(cells[0])) and step[1] == lives[-1][0][0]:
            lives[-1][1].append(_word(cells[1])[0])
    for cells, steps in lives:
        yield _life(cells, steps)


def _life(cells: list[str], steps: list[str]) -> Accounted:
    job_id, state, code, user, submitted, started, ended, reason, name = cells
    word, by = _word(state)
    return Accounted(
        job_id,
        word,
        by,
        *_code(code),
        user,
        _number(submitted),
        _number(started),
        _number(ended),
        "" if reason == "None" else reason,
        name,
        tuple(steps),
    )


def _cut(line: str) -> Iterator[tuple[str, str]]:
    begin = 0
    for name, width in SQUEUE_COLUMNS.items():
        yield name, line[begin : begin + width].strip()
        begin += width


def _word(state: str) -> tuple[str, str]:
    """`CANCELLED by 1000` and `CANCELLED+` (cut off) are both CANCELLED."""
    word, _, by = state.partition(" by ")
    return word.strip().rstrip("+"), by.strip().rstrip("+")


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text.strip()) else None


def _code(text: str) -> tuple[int, int]:
    """Exit code and signal: accounting writes `1:0`, squeue the wait status that holds both."""
    code, colon, signal = text.partition(":")
    if colon:
        return int(_number(code) or 0), int(_number(signal) or 0)
    status = int(_number(code) or 0)
    return status >> 8, status & 0x7F
