"""`nemotron jobs`: look after what was submitted with --batch."""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from nemotron.cli.sweep_jobs import chosen, show_sweep, sweep_option
from nemotron.errors import SubmitError, UsageError
from nemotron.job import JobState, Phase
from nemotron.jobs import Record, all_records, exit_code_of, find_record, wait_for, worst


@click.group()
def jobs() -> None:
    """Look after submitted jobs. An ID may be shortened; without one, the latest job is meant."""


@jobs.command("list")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def list_jobs(as_json: bool) -> None:
    """All jobs that were submitted from here, and how they are."""
    rows = [_row(record) for record in all_records(os.environ)]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        click.echo(f"{row['id']}  {row['phase']:<9}  {row['profile']:<20}  {row['name']:<35}  {row['output_dir']}")
    if not rows:
        click.echo("No job was submitted from here yet.", err=True)


@jobs.command("status")
@click.argument("job_id", metavar="[ID]", required=False)
@sweep_option
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def status(job_id: str | None, sweep_id: str | None, as_json: bool) -> None:
    """How far a job is, task by task; of a sweep how each of its jobs is, live on a terminal."""
    if sweep_id is not None:
        show_sweep(job_id, sweep_id, as_json)
        return
    record = find_record(job_id, os.environ)
    row = _row(record) | {"progress": record.progress, "summary": record.summary}
    if as_json:
        click.echo(json.dumps(row, indent=2))
        return
    reason = f" ({row['reason']})" if row["reason"] else ""
    click.echo(f"{record.id}  {record.name}  {row['phase']}{reason}\n  results: {record.output_dir}")
    for task in record.tasks:
        click.echo(f"  {task}: {record.summary.get(task, 'not finished')}")
    if record.progress:
        click.echo(_in_words(record.progress))


@jobs.command("logs")
@click.argument("job_id", metavar="[ID]", required=False)
@click.option("-f", "--follow", is_flag=True, help="Until the job has ended.")
def logs(job_id: str | None, follow: bool) -> None:
    """What a job has printed."""
    record = find_record(job_id, os.environ)
    for line in record.executor(os.environ).logs(record.submission, follow):
        click.echo(line)


@jobs.command("cancel")
@click.argument("job_ids", metavar="ID...", nargs=-1)
@sweep_option
def cancel(job_ids: tuple[str, ...], sweep_id: str | None) -> None:
    """Stop jobs; what they finished is kept."""
    if not job_ids and sweep_id is None:
        raise UsageError("Which jobs? Name them by ID, or their sweep with --sweep; `nemotron jobs list` shows them.")
    for record in chosen(job_ids, sweep_id):
        state = _state(record)
        if state.phase.is_final:
            click.echo(f"{record.id} has ended already: {state.phase}.")
            continue
        record.executor(os.environ).cancel(record.submission)
        click.echo(f"{record.id} was asked to stop.")


@jobs.command("wait")
@click.argument("job_ids", metavar="[ID]...", nargs=-1)
@sweep_option
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Give up waiting; exit code 124.")
def wait(job_ids: tuple[str, ...], sweep_id: str | None, timeout: float | None) -> None:
    """Until jobs have ended; the exit code is that of the worst task of the worst job."""
    records = chosen(job_ids, sweep_id)
    states = wait_for(records, _state, timeout=timeout)
    for record in records:
        click.echo(f"{record.id}  {states[record.id].phase}  {record.output_dir}")
    if any(state.phase in (Phase.QUEUED, Phase.RUNNING) for state in states.values()):
        sys.exit(124)
    sys.exit(worst([exit_code_of(record, states[record.id]) for record in records]))


def _in_words(progress: Mapping[str, Any]) -> str:
    """`  now gsm8k (2 of 3): 120 of 1319 samples, 35.2 requests/s, 0 errors, 34 s left`, as far as it is known."""
    if progress["task"] is None:
        return (
            f"  {progress['state']}: {progress['tasks_done']} of {progress['tasks_total']} tasks, {progress['updated']}"
        )
    samples, total, rate, left = (
        progress[key] for key in ("samples_done", "samples_total", "requests_per_second", "eta_seconds")
    )
    facts = [
        f"{samples} of {total or '?'} samples" if samples is not None else "",
        f"{rate:.1f} requests/s" if rate is not None else "",
        f"{progress['errors']} errors",
        f"{left:.0f} s left" if left is not None else "",
    ]
    number = progress["tasks_done"] + 1
    return f"  now {progress['task']} ({number} of {progress['tasks_total']}): {', '.join(filter(None, facts))}"


def _row(record: Record) -> dict[str, Any]:
    state = _state(record)
    return {
        "id": record.id,
        "name": record.name,
        "phase": str(state.phase),
        "reason": state.reason,
        "exit_code": state.exit_code,
        "profile": record.profile_name,
        "backend": record.submission.backend,
        "backend_id": record.submission.job_id,
        "submitted": record.submitted,
        "output_dir": record.output_dir,
        "tasks": list(record.tasks),
    }


def _state(record: Record) -> JobState:
    """A backend that cannot be asked now says nothing about its jobs, or about those of others."""
    try:
        return record.executor(os.environ).state(record.submission)
    except SubmitError as error:
        return JobState(Phase.UNKNOWN, reason=str(error))
