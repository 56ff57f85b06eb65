"""A sweep of `nemotron steps run`: many jobs, one table."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from nemotron.catalog import Step
from nemotron.cli.states import states_of, warn
from nemotron.cli.table import show
from nemotron.env_file import find_profile
from nemotron.jobs import Record
from nemotron.launch import check_backend, describe
from nemotron.request import Request
from nemotron.sweep.compiled import SweptJob, compile_points
from nemotron.sweep.file import read_points
from nemotron.sweep.points import Point, points_of
from nemotron.sweep.record import Place, Sweep, jobs_of, remember_sweep
from nemotron.sweep.submit import Fate, Outcome, submit_all


def run_sweep(step: Step, request: Request, file: str | None, *, dry_run: bool, as_json: bool) -> None:
    points = points_of(request.overrides) if file is None else _points_of_file(file, request)
    jobs = compile_points(step, points, lambda point: _request_of(point, request))
    places = [Place(job.point, job.output_dir) for job in jobs]
    sweep = Sweep.of(request.profile.name, places, request.now.isoformat(timespec="seconds"))
    if dry_run:
        click.echo(json.dumps(_described(sweep, jobs), indent=2))
        return
    check_backend(jobs[0].compiled)
    remember_sweep(sweep, os.environ)
    outcomes = _submit(jobs, sweep, request, _progress(len(jobs)))
    if as_json:
        click.echo(json.dumps({"sweep": sweep.id, "points": [_row(outcome) for outcome in outcomes]}, indent=2))
    else:
        _show(sweep, outcomes)
    sys.exit(max(outcome.exit_code for outcome in outcomes))


def _points_of_file(file: str, request: Request) -> list[Point]:
    return read_points(Path(file).expanduser(), request.overrides, request.environ)


def _request_of(point: Point, request: Request) -> Request:
    """The profile is read again, since it may refer to variables that differ from point to point."""
    environ = {**request.environ, **point.env}
    profile = find_profile(request.profile.name, environ, request.folder)
    return replace(request, environ=environ, profile=profile, overrides=point.overrides)


def _described(sweep: Sweep, jobs: Sequence[SweptJob]) -> dict[str, Any]:
    return {"sweep": sweep.id, "points": [{"point": job.point, "job": describe(job.compiled)} for job in jobs]}


def _submit(
    jobs: Sequence[SweptJob], sweep: Sweep, request: Request, progress: Callable[[Outcome], None]
) -> list[Outcome]:
    """In the order of the points, whatever order they come about in."""
    outcomes = {}
    for outcome in submit_all(jobs, jobs_of(sweep, os.environ), states_of, sweep.profile_name, request.now, warn):
        outcomes[outcome.point] = outcome
        progress(outcome)
    return [outcomes[job.point] for job in jobs]


def _progress(total: int) -> Callable[[Outcome], None]:
    """A line for each point on stderr: a sweep of many takes a while."""
    done: list[str] = []

    def tell(outcome: Outcome) -> None:
        done.append(outcome.point)
        click.echo(f"{len(done)}/{total} {outcome.point}: {outcome.fate}{_because(outcome)}", err=True)

    return tell


def _because(outcome: Outcome) -> str:
    return f", {outcome.detail}" if outcome.detail else ""


def _row(outcome: Outcome) -> dict[str, Any]:
    job = submitted(outcome.record) if outcome.record else None
    return {
        "point": outcome.point,
        "fate": str(outcome.fate),
        "detail": outcome.detail,
        "output_dir": outcome.output_dir,
        "job": job,
    }


def submitted(record: Record) -> dict[str, Any]:
    """A job for programs."""
    submission = record.submission
    return {
        "id": record.id,
        "backend": submission.backend,
        "backend_id": submission.job_id,
        "output_dir": record.output_dir,
    }


def _cells(outcome: Outcome) -> tuple[str, ...]:
    record = outcome.record
    ids = (record.id, record.submission.job_id[:12]) if record else ("", "")
    return (outcome.point, str(outcome.fate), *ids, outcome.output_dir)


def _show(sweep: Sweep, outcomes: Sequence[Outcome]) -> None:
    show(("point", "", "job", "backend's id", "results"), [_cells(outcome) for outcome in outcomes])
    counts = {fate: sum(outcome.fate is fate for outcome in outcomes) for fate in Fate}
    click.echo(f"Sweep {sweep.id}: " + ", ".join(f"{count} {fate}" for fate, count in counts.items() if count) + ".")
    if counts[Fate.LEFT] or counts[Fate.FAILED]:
        click.echo("  The same command again goes on with those that have no job, and leaves the others alone.")
    for command in ("status", "wait", "cancel", "fetch"):
        click.echo(f"  nemotron jobs {command} --sweep {sweep.id}")
