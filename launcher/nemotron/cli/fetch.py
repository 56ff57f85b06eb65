"""`nemotron jobs fetch`."""

import json
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from nemotron.cli.states import warn
from nemotron.cli.sweep_jobs import chosen, sweep_option
from nemotron.errors import LauncherError
from nemotron.fetch.copying import Copied
from nemotron.fetch.job import fetch_job, results_here, session_of
from nemotron.jobs import Record
from nemotron.scores import score_lines

KIB = 1 << 10
UNITS = ("KiB", "MiB", "GiB", "TiB")


@click.command("fetch")
@click.argument("job_ids", metavar="[ID]...", nargs=-1)
@sweep_option
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where to; of several jobs each gets a folder in it. Default: a folder here, named by the job's ID.",
)
def fetch(job_ids: tuple[str, ...], sweep_id: str | None, folder: Path | None) -> None:
    """Copy results and logs to this machine. What is here already is left; what was cut short goes on."""
    records = chosen(job_ids, sweep_id)
    failed = [record for record in records if not _fetch_told(record, _target(record, records, folder))]
    sys.exit(int(bool(failed)))


def _target(record: Record, records: Sequence[Record], folder: Path | None) -> Path | None:
    """None for a folder of its own, where it needs one."""
    if folder is None or len(records) == 1:
        return folder
    return folder / record.id


def _fetch_told(record: Record, target: Path | None) -> bool:
    """One job that cannot be fetched does not keep the others away."""
    try:
        _show(record, *_fetched(record, target))
    except LauncherError as error:
        click.echo(f"Error: {error}", err=True)
        return False
    return True


def _fetched(record: Record, target: Path | None) -> tuple[Path, Copied | None, str]:
    session = session_of(record, os.environ)
    if target is None and session.is_here:
        return results_here(record), None, session.name
    folder = (target or Path(record.id)).absolute()
    return folder, fetch_job(session, record, folder), session.name


def _show(record: Record, folder: Path, copied: Copied | None, source: str) -> None:
    summary = _summary(folder)
    for task in record.tasks:
        click.echo(f"{task}: {summary.get(task, 'not finished')}")
    for line in score_lines(folder, record.tasks):
        click.echo(line)
    if copied is None:
        click.echo("The results are on this machine already.", err=True)
    else:
        click.echo(f"{copied.files} files, {_amount(copied.size)} from {source}; {copied.kept} were here", err=True)
        for path in copied.unsettled:
            warn(f"{path} is still being written; fetch again for its end.")
        for path in copied.refused:
            warn(f"{path} may not be read there, and was left out.")
    click.echo(str(folder))


def _amount(size: int) -> str:
    """`812 B`, `3.1 KiB`, `1.2 GiB`."""
    if size < KIB:
        return f"{size} B"
    power = min(int(math.log(size, KIB)), len(UNITS))
    return f"{size / KIB**power:.1f} {UNITS[power - 1]}"


def _summary(folder: Path) -> dict[str, str]:
    try:
        content = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
