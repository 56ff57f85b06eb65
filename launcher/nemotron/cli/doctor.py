"""`nemotron doctor`."""

import json
import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from nemotron.catalog import find_step
from nemotron.doctor.examination import Found, examine
from nemotron.doctor.finding import Severity
from nemotron.doctor.patient import DEFAULT_WAIT_SECONDS, checks_of
from nemotron.env_file import find_profile
from nemotron.errors import LauncherError, UsageError
from nemotron.launch import compile_step
from nemotron.profiles import Profile
from nemotron.request import CompiledJob, GeneratedFile, Request

STEP = "eval/model_eval"
COLOURS = {Severity.OK: "green", Severity.WARN: "yellow", Severity.FAIL: "red", Severity.SKIP: "bright_black"}


@click.command()
@click.option("-b", "--batch", "profile_name", metavar="PROFILE", required=True, help="The profile of env.toml.")
@click.option("-c", "--config", help="The suite that is to be run, by name or path.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.option("--no-job", is_flag=True, help="Without the small job, so nothing is known of compute nodes.")
@click.option(
    "--wait",
    type=click.FloatRange(min=1),
    default=DEFAULT_WAIT_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long the small job may take to begin and end.",
)
@click.argument("overrides", metavar="[KEY=VALUE]...", nargs=-1)
def doctor(
    profile_name: str, config: str | None, as_json: bool, no_job: bool, wait: float, overrides: tuple[str, ...]
) -> None:
    """Whether an evaluation can run under a profile: a line a finding, with what to do. Exit code 1 when it cannot."""
    profile, suite = _compiled(profile_name, config, overrides)
    found = examine(checks_of(profile, suite, dict(os.environ), has_job=not no_job, wait=wait))
    results = list(found) if as_json else _shown(found)
    if as_json:
        click.echo(json.dumps({"profile": profile_name, "findings": [_row(one) for one in results]}, indent=2))
    sys.exit(int(any(one.finding.severity in (Severity.FAIL, Severity.SKIP) for one in results)))


def _compiled(name: str, config: str | None, overrides: tuple[str, ...]) -> tuple[Profile, CompiledJob | LauncherError]:
    """A suite that cannot be resolved is a finding; a profile that cannot be is the end."""
    step, folder = find_step(STEP), Path.cwd()
    named = find_profile(name, os.environ, folder)
    request = Request(
        config=config or step.default_config,
        profile=named,
        folder=folder,
        now=datetime.now(UTC),
        environ=dict(os.environ),
        overrides=overrides,
    )
    try:
        compiled = compile_step(step, request)
    except UsageError as error:
        return named.with_settings({}), error
    assert not isinstance(compiled, GeneratedFile)
    return compiled.profile, compiled


def _shown(found: Iterable[Found]) -> list[Found]:
    """As they come: some take a while."""
    shown = []
    for one in found:
        word = click.style(f"{one.finding.severity:<4}", fg=COLOURS[one.finding.severity])
        click.echo(f"{word}  {one.check:<13}  {' '.join(str(one.finding).split())}")
        shown.append(one)
    return shown


def _row(found: Found) -> dict[str, Any]:
    finding = found.finding
    return {
        "check": found.check,
        "severity": str(finding.severity),
        "code": finding.code,
        "what": finding.what,
        "action": finding.action,
    }
