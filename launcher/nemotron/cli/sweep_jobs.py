"""The jobs of a sweep, all at once: which they are, and how."""

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from nemotron.cli.states import states_of
from nemotron.cli.table import rich_table, show
from nemotron.errors import UsageError
from nemotron.job import JobState, Phase
from nemotron.jobs import Record, find_record
from nemotron.reports import Report, reports_of
from nemotron.states import Answers, ask
from nemotron.sweep.record import Place, Sweep, find_sweep, jobs_of

LATEST = ""
REFRESH_SECONDS = 2.0
"""At most: a backend that wants to be asked less often is."""
HEAD = ("point", "state", "job", "results")
NOT_SUBMITTED = "not submitted"

sweep_option = click.option(
    "--sweep",
    "sweep_id",
    is_flag=False,
    flag_value=LATEST,
    metavar="[ID]",
    help="All jobs of a sweep; without an ID of the latest one.",
)


def chosen(job_ids: Sequence[str], sweep_id: str | None) -> list[Record]:
    """The jobs that a command is about; the latest one when none is named."""
    if sweep_id is None:
        return [find_record(job_id, os.environ) for job_id in job_ids or (None,)]
    sweep = _sweep(job_ids, sweep_id)
    records = list(jobs_of(sweep, os.environ).values())
    if not records:
        raise UsageError(f"No point of sweep {sweep.id} has a job: run the sweep's command again.")
    return records


def show_sweep(job_id: str | None, sweep_id: str, as_json: bool) -> None:
    """Live on a terminal, until every job has ended or Ctrl-C."""
    sweep = _sweep([job_id] if job_id else [], sweep_id)
    records = jobs_of(sweep, os.environ)
    if sys.stdout.isatty() and not as_json:
        _follow(sweep, records)
        return
    states = states_of(list(records.values()))
    if as_json:
        points = [_row(place, records.get(place.point), states) for place in sweep.places]
        click.echo(json.dumps({"sweep": sweep.id, "profile": sweep.profile_name, "points": points}, indent=2))
    else:
        show(HEAD, _cells(sweep, records, states))
        click.echo(_counted(sweep, records, states))


def _sweep(job_ids: Sequence[str], sweep_id: str) -> Sweep:
    if job_ids:
        raise UsageError("Jobs and --sweep exclude each other: name the jobs, or the sweep.")
    return find_sweep(sweep_id or None, os.environ)


def _follow(sweep: Sweep, records: Mapping[str, Record]) -> None:
    from rich.console import Group
    from rich.live import Live

    def shown(answers: Answers) -> Group:
        table = rich_table(HEAD, _cells(sweep, records, answers.states))
        return Group(table, _counted(sweep, records, answers.states), *answers.warnings())

    jobs = list(records.values())
    try:
        answers = ask(jobs, os.environ)
        with Live(shown(answers), auto_refresh=False) as live:
            while not all(state.phase.is_final for state in answers.states.values()):
                time.sleep(max(REFRESH_SECONDS, answers.pace.first))
                answers = ask([find_record(job.id, os.environ) for job in jobs], os.environ)
                live.update(shown(answers), refresh=True)
    except KeyboardInterrupt:
        return  # the jobs go on


def _row(place: Place, record: Record | None, states: Mapping[str, JobState]) -> dict[str, Any]:
    state = states[record.id] if record else None
    return {
        "point": place.point,
        "phase": str(state.phase) if state else None,
        "reason": state.reason if state else NOT_SUBMITTED,
        "exit_code": state.exit_code if state else None,
        "job": record.id if record else None,
        "backend_id": record.submission.job_id if record else None,
        "output_dir": place.output_dir,
    }


def _cells(sweep: Sweep, records: Mapping[str, Record], states: Mapping[str, JobState]) -> list[tuple[str, ...]]:
    running = [record for record in records.values() if states[record.id].phase is Phase.RUNNING]
    reports = reports_of(running, os.environ)
    return [
        (
            place.point,
            _in_words(records.get(place.point), states, reports),
            _id(records.get(place.point)),
            place.output_dir,
        )
        for place in sweep.places
    ]


def _in_words(record: Record | None, states: Mapping[str, JobState], reports: Mapping[str, Report]) -> str:
    if record is None:
        return NOT_SUBMITTED
    state = states[record.id]
    progress = reports[record.id].progress if record.id in reports else {}
    if not progress:
        return f"{state.phase}, {state.reason}" if state.reason else str(state.phase)
    return f"{state.phase}, {progress['tasks_done']} of {progress['tasks_total']} tasks"


def _id(record: Record | None) -> str:
    return record.id if record else ""


def _counted(sweep: Sweep, records: Mapping[str, Record], states: Mapping[str, JobState]) -> str:
    phases = [str(states[records[p.point].id].phase) if p.point in records else NOT_SUBMITTED for p in sweep.places]
    return f"Sweep {sweep.id}: " + ", ".join(f"{phases.count(phase)} {phase}" for phase in dict.fromkeys(phases)) + "."
