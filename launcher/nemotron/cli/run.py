"""`nemotron steps run`."""

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from nemotron.catalog import Step, find_step
from nemotron.cli.states import warn
from nemotron.cli.sweep import run_sweep, submitted
from nemotron.env_file import find_profile
from nemotron.errors import UsageError
from nemotron.launch import check_backend, compile_step, describe, ready, run_attached, submit, write
from nemotron.profiles import LOCAL
from nemotron.request import CompiledJob, GeneratedFile, Request
from nemotron.scores import score_lines

REFUSED = 2
"""The exit code of a runner that touched nothing."""


@click.command("run")
@click.argument("step_id", metavar="ID")
@click.option("-c", "--config", help="A suite by name, or the path of a YAML file.")
@click.option("-t", "--task", "tasks", multiple=True, help="Run exactly this task; can be given again.")
@click.option("-r", "--run", "attached", metavar="PROFILE", help="Run under a profile of env.toml and wait for it.")
@click.option("-b", "--batch", "detached", metavar="PROFILE", help="Submit under a profile of env.toml and return.")
@click.option("-d", "--dry-run", is_flag=True, help="Compile the job, print it, submit nothing.")
@click.option("-m", "--multirun", is_flag=True, help="A job for each combination of KEY=VALUE,VALUE.")
@click.option("--sweep", "sweep_file", metavar="FILE", help="A job for each table of a TOML file.")
@click.option("--json", "as_json", is_flag=True, help="What was submitted, for programs.")
@click.option("--force-squash", is_flag=True, help="Rebuild the .sqsh of the image, where the backend uses one.")
@click.argument("overrides", metavar="[KEY=VALUE]...", nargs=-1)
def run_step(
    step_id: str,
    config: str | None,
    tasks: tuple[str, ...],
    attached: str | None,
    detached: str | None,
    dry_run: bool,
    multirun: bool,
    sweep_file: str | None,
    as_json: bool,
    force_squash: bool,
    overrides: tuple[str, ...],
) -> None:
    """Run a step. Without -r and -b: on this machine, and wait for it."""
    _check(attached, detached, multirun, sweep_file, as_json)
    step = find_step(step_id)
    now, folder = datetime.now(UTC), Path.cwd()
    name = attached or detached
    request = Request(
        config=config or step.default_config,
        profile=find_profile(name, os.environ, folder) if name else LOCAL,
        folder=folder,
        now=now,
        environ=dict(os.environ),
        tasks=tuple(dict.fromkeys(tasks)),
        overrides=overrides,
        rebuilds_squash=force_squash,
    )
    if multirun or sweep_file:
        run_sweep(step, request, sweep_file, dry_run=dry_run, as_json=as_json)
        return
    match compile_step(step, request):
        case GeneratedFile() as generated:
            _write(generated, step, name, dry_run)
        case CompiledJob() as compiled:
            _start(compiled, request, is_detached=detached is not None, dry_run=dry_run, as_json=as_json)


def _check(attached: str | None, detached: str | None, multirun: bool, sweep_file: str | None, as_json: bool) -> None:
    if attached and detached:
        raise UsageError("--run and --batch exclude each other: attached or detached?")
    if multirun and sweep_file:
        raise UsageError("-m and --sweep exclude each other: comma lists or a file?")
    if (multirun or sweep_file) and not detached:
        raise UsageError("The jobs of a sweep are submitted together: name their profile with --batch.")
    if as_json and not detached:
        raise UsageError("--json is about what was submitted: it goes with --batch.")


def _write(generated: GeneratedFile, step: Step, profile_name: str | None, dry_run: bool) -> None:
    if profile_name is not None:
        raise UsageError(f"{step.id} runs here, without a profile: leave --run and --batch out.")
    if dry_run:
        click.echo(generated.text, nl=False)
        return
    write(generated)
    click.echo(f"Wrote {generated.path}. {generated.next_step}")


def _start(compiled: CompiledJob, request: Request, *, is_detached: bool, dry_run: bool, as_json: bool) -> None:
    if dry_run:
        click.echo(json.dumps(describe(compiled), indent=2))
        return
    check_backend(compiled)
    compiled = ready(compiled, warn, is_attached=not is_detached)
    if is_detached:
        record = submit(compiled, request.profile.name, request.now)
        if as_json:
            click.echo(json.dumps(submitted(record), indent=2))
            return
        click.echo(f"Submitted job {record.id} ({record.submission.backend} {record.submission.job_id}).")
        click.echo(f"  results: {record.output_dir}")
        for command in ("status", "logs -f", "wait", "cancel"):
            click.echo(f"  nemotron jobs {command} {record.id}")
    else:
        code = run_attached(compiled)
        if code != REFUSED:  # what lies there then is of another run
            _show_scores(compiled)
        sys.exit(code)


def _show_scores(compiled: CompiledJob) -> None:
    plan = compiled.job.plan
    if not plan["dry_run"]:
        for line in score_lines(Path(compiled.job.output_dir), [task["name"] for task in plan["tasks"]]):
            click.echo(line)
