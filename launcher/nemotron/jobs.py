"""What was submitted, a file a job, so that later commands find it again."""

import contextlib
import json
import math
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from nemotron.errors import UsageError, unknown
from nemotron.executors import executor_for
from nemotron.executors.base import Executor
from nemotron.files import write_json
from nemotron.home import home
from nemotron.job import JobState, Phase, Submission
from nemotron.profiles import Profile, parse_profile
from nemotron.request import CompiledJob

SEVERITY = (0, 75, 1, 2)
"""Exit codes of the runner from good to bad: of several jobs the worst one counts."""
POLL_SECONDS = 1.0
GRACE_SECONDS = 60.0
"""Accounting is late and engines restart: only after so long is an unknown state taken for the last word."""


@dataclass(frozen=True, slots=True)
class Record:
    id: str
    name: str
    submitted: str
    profile_name: str
    profile: Mapping[str, Any]
    """Enough to reach the backend again; without the variables it forwards."""
    output_dir: str
    tasks: tuple[str, ...]
    submission: Submission

    def executor(self, environ: Mapping[str, str]) -> Executor:
        return executor_for(self._profile(), environ)

    def _profile(self) -> Profile:
        return parse_profile(self.profile, f"the record of job {self.id}")

    @property
    def progress(self) -> dict[str, Any]:
        """What the runner says of itself, where its folder can be read from here."""
        return _read_object(Path(self.output_dir) / "progress.json")

    @property
    def summary(self) -> dict[str, str]:
        return _read_object(Path(self.output_dir) / "summary.json")


def remember(compiled: CompiledJob, submission: Submission, profile_name: str, now: datetime) -> Record:
    folder = _folder(compiled.environ)
    folder.mkdir(parents=True, exist_ok=True)
    record = Record(
        id=_new_id(folder, now),
        name=compiled.job.name,
        submitted=now.isoformat(timespec="seconds"),
        profile_name=profile_name,
        profile=compiled.profile.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"env_vars"})
        | {"executor": compiled.profile.executor},
        output_dir=compiled.job.output_dir,
        tasks=tuple(task["name"] for task in compiled.job.plan["tasks"]),
        submission=submission,
    )
    write_json(folder / f"{record.id}.json", asdict(record))
    return record


def all_records(environ: Mapping[str, str]) -> list[Record]:
    """Oldest first."""
    return sorted(_records(_folder(environ)), key=lambda record: record.id)


def find_record(job_id: str | None, environ: Mapping[str, str]) -> Record:
    """By id or its unambiguous beginning; without one, the latest."""
    records = all_records(environ)
    if not records:
        raise UsageError("No job was submitted from here yet: `nemotron steps run … --batch PROFILE` submits one.")
    if job_id is None:
        return records[-1]
    matching = [record for record in records if record.id.startswith(job_id)]
    if len(matching) > 1 and job_id not in (record.id for record in matching):
        raise UsageError(f"{job_id!r} begins {len(matching)} jobs: {', '.join(record.id for record in matching)}.")
    if not matching:
        raise UsageError(unknown("job", job_id, [record.id for record in records[-10:]]))
    return next((record for record in matching if record.id == job_id), matching[0])


def wait_for(
    records: Sequence[Record],
    state_of: Callable[[Record], JobState],
    *,
    timeout: float | None = None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, JobState]:
    """The state of every job by id: final, or unknown for so long that nobody will ever know, unless `timeout` seconds
    passed before."""
    deadline = math.inf if timeout is None else clock() + timeout
    last_known = dict.fromkeys((record.id for record in records), clock())
    while True:
        states = {record.id: state_of(record) for record in records}
        now = clock()
        last_known |= {name: now for name, state in states.items() if state.phase is not Phase.UNKNOWN}
        open_jobs = [
            name
            for name, state in states.items()
            if not state.phase.is_final and now - last_known[name] < GRACE_SECONDS
        ]
        if not open_jobs or now >= deadline:
            return states
        sleep(POLL_SECONDS)


def exit_code_of(record: Record, state: JobState) -> int:
    """Of the worst task; a job that is said to be fine but whose summary knows a failed task is not."""
    if state.phase is Phase.STOPPED:
        return 75
    if state.phase is not Phase.COMPLETED:
        return state.exit_code if state.exit_code in SEVERITY and state.exit_code else 1
    return int(any(record.summary.get(task, "ok") != "ok" for task in record.tasks))


def worst(codes: Sequence[int]) -> int:
    return max(codes, key=SEVERITY.index, default=0)


def _folder(environ: Mapping[str, str]) -> Path:
    return home(environ) / "jobs"


def _new_id(folder: Path, now: datetime) -> str:
    """A sweep takes many within a second: a number that is taken would hide the job that has it."""
    while True:
        job_id = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        with contextlib.suppress(FileExistsError):
            (folder / f"{job_id}.json").touch(exist_ok=False)
            return job_id


def _records(folder: Path) -> Iterator[Record]:
    for path in folder.glob("*.json"):
        content = _read_object(path)
        if content:
            submission = Submission(**content.pop("submission"))
            yield Record(**content | {"tasks": tuple(content["tasks"])}, submission=submission)


def _read_object(path: Path) -> dict[str, Any]:
    """Empty where there is none (yet), or the folder is on another machine."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
