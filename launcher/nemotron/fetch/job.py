"""What of a job is worth having at home."""

import json
from collections.abc import Mapping
from pathlib import Path

from nemotron.errors import SubmitError, UsageError
from nemotron.fetch.copying import Copied, copy_folder
from nemotron.jobs import Record
from nemotron.profiles import DockerProfile, LocalProfile, SlurmProfile
from nemotron.slurm.folder import LOG, MARKER, PLAN, SCRIPT, STEP
from nemotron.transport.base import Session
from nemotron.transport.here import Here
from nemotron.transport.reach import session_for

OF_THE_JOB = {LOG, MARKER, SCRIPT, PLAN, STEP}
"""Of its own folder; the rest is programs, and secrets for a restart."""


def session_of(record: Record, environ: Mapping[str, str]) -> Session:
    match profile := record.parsed_profile():
        case LocalProfile() | DockerProfile():
            return Here(environ)
        case SlurmProfile():
            return session_for(profile, environ)
        case _:
            raise UsageError(
                f"Results of {profile.executor} lie on its storage, at {record.output_dir}: copy them there."
            )


def fetch_job(session: Session, record: Record, target: Path) -> Copied:
    """The results as they lie there, and the job's script, plan and log in a folder beside them."""
    _check_target(target, record)
    folder = record.submission.details.get("folder")
    own = _fetched(session, folder, target / f"job-{record.submission.job_id}", OF_THE_JOB) if folder else None
    results = _fetched(session, record.output_dir, target, None)
    if results is None:
        logs = f" Its log is in {target}." if own else ""
        raise SubmitError(_without_results(record, session.name) + logs)
    return results if own is None else _sum(results, own)


def results_here(record: Record) -> Path:
    """Of a job whose results need no copy."""
    folder = Path(record.output_dir)
    if not folder.is_dir():
        raise SubmitError(_without_results(record, "this machine"))
    return folder


def _without_results(record: Record, place: str) -> str:
    return f"Job {record.id} has no results yet at {record.output_dir} on {place}."


def _check_target(target: Path, record: Record) -> None:
    """A job that goes on with another's results may join them; those of different folders would become a mixture."""
    for plan in sorted(target.glob(f"job-*/{PLAN}")):
        if (other := _results_of(plan)) not in (None, record.output_dir):
            raise UsageError(f"{target} has results of {other} already: give job {record.id} another folder with --to.")


def _results_of(plan: Path) -> str | None:
    """None where nobody can tell."""
    try:
        content = json.loads(plan.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content.get("output_dir") if isinstance(content, dict) else None


def _fetched(session: Session, source: str, target: Path, names: set[str] | None) -> Copied | None:
    """None where there is no such folder."""
    try:
        return copy_folder(session, source, target, wants=lambda path: names is None or path in names)
    except FileNotFoundError as error:
        if error.filename not in (source, f"{source}/"):
            raise
        return None


def _sum(one: Copied, other: Copied) -> Copied:
    return Copied(
        one.files + other.files,
        one.size + other.size,
        one.kept + other.kept,
        (*one.unsettled, *other.unsettled),
        (*one.refused, *other.refused),
    )
