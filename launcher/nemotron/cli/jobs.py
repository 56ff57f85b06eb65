"""`nemotron jobs`: look after what was submitted with --batch."""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from nemotron.cli.fetch import fetch
from nemotron.cli.states import states_of, warn
from nemotron.cli.sweep_jobs import chosen, show_sweep, sweep_option
from nemotron.errors import UsageError
from nemotron.job import JobState, Phase
from nemotron.jobs import Record, all_records, find_record
from nemotron.reports import reports_of
from nemotron.states import ask, cancel_all
from nemotron.waiting import exit_code_of, wait_for, worst


@click.group()
def jobs() -> None:
    """Look after submitted jobs. An ID may be shortened; without one, the latest job is meant."""


jobs.add_command(fetch)


@jobs.command("list")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def list_jobs(as_json: bool) -> None:
    """All jobs that were submitted from here, and how they are."""
    records = all_records(os.environ)
    states = states_of(records)
    rows = [_row(record, states[record.id]) for record in records]
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
    state = states_of([record])[record.id]
    report = reports_of([record], os.environ)[record.id]
    if as_json:
        click.echo(
            json.dumps({**_row(record, state), "progress": report.progress, "summary": report.summary}, indent=2)
        )
        return
    click.echo(f"{record.id}  {record.name}  {_state_in_words(state)}")
    click.echo(f"  {record.submission.backend} {record.submission.job_id}\n  results: {record.output_dir}")
    for task in record.tasks:
        click.echo(f"  {task}: {report.summary.get(task, 'not finished')}")
    if report.progress:
        click.echo(_in_words(report.progress))


@jobs.command("logs")
@click.argument("job_id", metavar="[ID]", required=False)
@click.option("-f", "--follow", is_flag=True, help="Until the job has ended.")
def logs(job_id: str | None, follow: bool) -> None:
    """What a job has printed."""
    record = find_record(job_id, os.environ)
    line = None
    for line in record.executor(os.environ).logs(record.submission, follow):
        click.echo(line)
    if line is None:
        click.echo(f"{record.id} has printed nothing: {_state_in_words(states_of([record])[record.id])}.", err=True)


@jobs.command("cancel")
@click.argument("job_ids", metavar="ID...", nargs=-1)
@sweep_option
def cancel(job_ids: tuple[str, ...], sweep_id: str | None) -> None:
    """Stop jobs; what they finished is kept."""
    if not job_ids and sweep_id is None:
        raise UsageError("Which jobs? Name them by ID, or their sweep with --sweep; `nemotron jobs list` shows them.")
    records = chosen(job_ids, sweep_id)
    states = states_of(records)
    ended = [record for record in records if states[record.id].phase.is_final]
    for record in ended:
        click.echo(f"{record.id} has ended already: {states[record.id].phase}.")
    asked, refused = cancel_all([record for record in records if record not in ended], os.environ)
    for record in asked:
        click.echo(f"{record.id} was asked to stop.")
    for record, reason in refused:
        click.echo(f"Error: {record.id} could not be asked to stop: {reason}", err=True)
    sys.exit(int(bool(refused)))


@jobs.command("wait")
@click.argument("job_ids", metavar="[ID]...", nargs=-1)
@sweep_option
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Give up waiting; exit code 124.")
def wait(job_ids: tuple[str, ...], sweep_id: str | None, timeout: float | None) -> None:
    """Until jobs have ended; the exit code is that of the worst task of the worst job."""
    records = chosen(job_ids, sweep_id)
    states = wait_for(records, lambda waiting: ask(waiting, os.environ), warn, timeout=timeout)
    for record in records:
        click.echo(f"{record.id}  {_state_in_words(states[record.id])}  {record.output_dir}")
    gave_up_on = (Phase.QUEUED, Phase.RUNNING, *([Phase.UNKNOWN] if timeout is not None else []))
    if any(state.phase in gave_up_on for state in states.values()):
        sys.exit(124)
    reports = reports_of(records, os.environ)
    sys.exit(worst([exit_code_of(states[job.id], reports[job.id].summary, job.tasks) for job in records]))


def _state_in_words(state: JobState) -> str:
    """`running, started again once`, `failed (out of memory: raise mem in the profile)`."""
    again = {0: "", 1: ", started again once"}.get(state.restarts, f", started again {state.restarts} times")
    return f"{state.phase}{again}" + (f" ({state.reason})" if state.reason else "")


def _in_words(progress: Mapping[str, Any]) -> str:
    """`  now gsm8k (2 of 3): 120 of 1319 samples, 35.2 requests/s, 0 errors, 34 s left`, as far as it is known."""
    if progress["task"] is None or progress["state"] != "running":
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


def _row(record: Record, state: JobState) -> dict[str, Any]:
    return {
        "id": record.id,
        "name": record.name,
        "phase": str(state.phase),
        "reason": state.reason,
        "exit_code": state.exit_code,
        "restarts": state.restarts,
        "profile": record.profile_name,
        "backend": record.submission.backend,
        "backend_id": record.submission.job_id,
        "submitted": record.submitted,
        "output_dir": record.output_dir,
        "tasks": list(record.tasks),
    }
