"""What was submitted, a file a job, so that later commands find it again."""

import contextlib
import json
import secrets
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from nemotron.errors import LauncherError, UsageError, unknown
from nemotron.executors import executor_for
from nemotron.executors.base import Executor
from nemotron.files import write_json
from nemotron.home import home
from nemotron.job import JobState, Phase, Submission
from nemotron.profiles import Profile, parse_profile
from nemotron.request import CompiledJob


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
    final: JobState | None = None
    """How it ended, once that is known for good: its backend forgets."""

    def executor(self, environ: Mapping[str, str]) -> Executor:
        return executor_for(self.parsed_profile(), environ)

    def parsed_profile(self) -> Profile:
        """Raises ProfileError where this version takes other profiles than the one that submitted."""
        return parse_profile(self.profile, f"the record of job {self.id}")


def make_folder(environ: Mapping[str, str]) -> Path:
    """Where jobs are remembered; one that cannot be made is better found out before a job is submitted."""
    folder = _folder(environ)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def remember(compiled: CompiledJob, submission: Submission, profile_name: str, now: datetime) -> Record:
    folder = make_folder(compiled.environ)
    record = Record(
        id=_new_id(folder, now),
        name=compiled.job.name,
        submitted=now.isoformat(timespec="milliseconds"),
        profile_name=profile_name,
        profile=compiled.profile.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"env_vars"})
        | {"executor": compiled.profile.executor},
        output_dir=compiled.job.output_dir,
        tasks=tuple(task["name"] for task in compiled.job.plan["tasks"]),
        submission=submission,
    )
    _write(record, folder)
    return record


def settle(record: Record, final: JobState, environ: Mapping[str, str]) -> Record:
    """Remember how a job ended; where that cannot be written down, its backend is asked again."""
    settled = replace(record, final=final)
    with contextlib.suppress(OSError):
        _write(settled, _folder(environ))
    return settled


def all_records(environ: Mapping[str, str]) -> list[Record]:
    """Oldest first."""
    return sorted(_records(_folder(environ)), key=lambda record: (record.submitted, record.id))


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


def by_backend(records: Sequence[Record]) -> tuple[list[list[Record]], dict[str, LauncherError]]:
    """Jobs that can be asked about together; and, by their ids, why some records cannot be read."""
    groups: dict[object, list[Record]] = defaultdict(list)
    unreadable: dict[str, LauncherError] = {}
    for record in records:
        try:
            groups[record.parsed_profile().backend].append(record)
        except LauncherError as error:
            unreadable[record.id] = error
    return list(groups.values()), unreadable


def _folder(environ: Mapping[str, str]) -> Path:
    return home(environ) / "jobs"


def _new_id(folder: Path, now: datetime) -> str:
    """A sweep takes many within a second: a number that is taken would hide the job that has it."""
    while True:
        job_id = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        with contextlib.suppress(FileExistsError):
            (folder / f"{job_id}.json").touch(exist_ok=False)
            return job_id


def _write(record: Record, folder: Path) -> None:
    write_json(folder / f"{record.id}.json", asdict(record))


def _records(folder: Path) -> Iterator[Record]:
    for path in folder.glob("*.json"):
        with contextlib.suppress(KeyError, TypeError, ValueError):  # no record, or not one that this version can read
            yield _parsed(_read_object(path))


def _parsed(content: Mapping[str, Any]) -> Record:
    """What a later version has added is left out."""
    known = {field.name: content[field.name] for field in fields(Record) if field.name in content}
    final = known.pop("final", None)
    return Record(
        **known
        | {
            "tasks": tuple(known["tasks"]),
            "submission": Submission(**known["submission"]),
            "final": final and JobState(**final | {"phase": Phase(final["phase"])}),
        }
    )


def _read_object(path: Path) -> dict[str, Any]:
    """Empty where it is not whole: a name that was taken for a job that is being submitted."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
