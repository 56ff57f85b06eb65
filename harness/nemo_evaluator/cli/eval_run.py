"""`nel eval run`."""

import json
import logging
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import yaml

import nemo_evaluator
from nemo_evaluator import suite
from nemo_evaluator.cli import loop
from nemo_evaluator.cli.background import start_in_background
from nemo_evaluator.cli.board import Board, Tally
from nemo_evaluator.cli.dry_run import plan_lines
from nemo_evaluator.cli.lasting import let_output_last
from nemo_evaluator.cli.options import endpoint
from nemo_evaluator.cli.runs import RunRecord, new_record
from nemo_evaluator.cli.signals import StopOnSignal
from nemo_evaluator.cli.summary import summary_lines
from nemo_evaluator.config.load import Loaded, load_config
from nemo_evaluator.config.model import EvalConfig
from nemo_evaluator.config.quick import Flags
from nemo_evaluator.engine.journal import Existing
from nemo_evaluator.errors import UsageError
from nemo_evaluator.masking import masked
from nemo_evaluator.results.write import replacing

SNAPSHOT = "full_config.yaml"


@click.command()
@click.argument("config_file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--bench", "-b", help="Benchmark name; beside a config, the one of its benchmarks to run.")
@click.option("--repeats", "-n", type=click.IntRange(min=1), help="Repeats per problem.  [default: 1]")
@click.option("--max-problems", type=click.IntRange(min=1), help="Limit problem count: the first N.")
@endpoint
@click.option("--system-prompt", help="System prompt; replaces the benchmark's own.")
@click.option("--temperature", type=click.FloatRange(0, 2), help="Sampling temperature; not sent unless given.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Maximum generated tokens.")
@click.option("--output-dir", "-o", help="Output directory.  [default: ./eval_results]")
@click.option("--max-error-rate", type=click.FloatRange(0, 1), help="More errors make the run failed.  [default: 0.05]")
@click.option("--dry-run", is_flag=True, help="Print the plan and the first prompts; ask and write nothing.")
@click.option("--submit", is_flag=True, help="Submit to cluster via SSH.")
@click.option("--background", is_flag=True, help="Run locally in background.")
@click.option("--resume", is_flag=True, help="Resume partially completed suite.")
@click.option("--overwrite", is_flag=True, help="Replace results in the output directory.")
@click.option("--override", "-O", "overrides", multiple=True, metavar="KEY=VALUE", help="Dot-path config override.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome for programs, and nothing else, on stdout.")
@click.option("--verbose", "-v", is_flag=True, help="Enable verbose logging.")
def run(
    config_file: Path | None,
    dry_run: bool,
    submit: bool,
    background: bool,
    resume: bool,
    overwrite: bool,
    overrides: tuple[str, ...],
    as_json: bool,
    verbose: bool,
    **flags: Any,
) -> None:
    """Run an evaluation: CONFIG_FILE, or --bench with --model-url and --model-id."""
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    if submit:
        raise UsageError("--submit needs a cluster to submit to; this version runs on this machine: leave it out.")
    if resume and overwrite:
        raise UsageError("--resume keeps results and --overwrite replaces them: give one of the two.")
    loaded = load_config(config_file, flags=Flags(**flags), overrides=overrides, environ=os.environ)
    record = new_record(loaded.config.output, resume)
    if dry_run:
        loop.run(_show_plan(loaded, record.folder))
        return
    if background:
        start_in_background(record)
        return
    existing: Existing = "resume" if resume else "overwrite" if overwrite else "refuse"
    sys.exit(loop.run(_run(loaded, record, existing, as_json)))


async def _show_plan(loaded: Loaded, output_dir: Path) -> None:
    for line in await plan_lines(loaded, await suite.prepare(loaded.config, output_dir)):
        click.echo(line)


async def _run(loaded: Loaded, record: RunRecord, existing: Existing, as_json: bool) -> int:
    """The exit code: 0 all completed, 1 one failed, 128 + signal when stopped."""
    let_output_last()
    stop = StopOnSignal()
    entries = await suite.prepare(loaded.config, record.folder)
    suite.check(entries, existing)
    record = replace(record, benchmarks=[entry.label for entry in entries])
    record.save()
    _write_snapshot(loaded, record.folder, existing)
    try:
        outcomes = await _run_watched(loaded.config, entries, existing, stop, as_json)
    finally:
        record.ended()
    return stop.exit_code or max(_exit_code(outcome) for outcome in outcomes)


async def _run_watched(
    config: EvalConfig, entries: list[suite.Entry], existing: Existing, stop: StopOnSignal, as_json: bool
) -> list[suite.Outcome]:
    """Results are shown as benchmarks end; below the bars, and as JSON, when all have."""
    for entry in entries:
        samples, url = len(entry.evaluation.plan), entry.evaluation.solver.endpoint
        click.echo(f"{entry.label}: {samples:,} samples, asking {url or 'a custom solver'}", err=as_json)
    tallies = {entry.label: Tally(entry.label, entry.folder) for entry in entries}
    async with Board(list(tallies.values()), config.output.progress_interval, sys.stderr) as board:
        at_once = _nothing if as_json or board.is_live else _show
        outcomes = await suite.run(entries, existing, tallies, stop.requested, at_once)
    if as_json:
        click.echo(json.dumps([_as_data(outcome) for outcome in outcomes], indent=2))
    elif board.is_live:
        for outcome in outcomes:
            _show(outcome)
    return outcomes


def _show(outcome: suite.Outcome) -> None:
    for line in summary_lines(outcome.entry.label, outcome.bundle, outcome.path):
        click.echo(line)
    if outcome.bundle["status"] != "completed":
        click.echo(f"Error: {outcome.entry.label} {outcome.bundle['status']}: {outcome.bundle['reason']}", err=True)


def _nothing(outcome: suite.Outcome) -> None:
    """Results are shown at the end."""


def _as_data(outcome: suite.Outcome) -> dict[str, Any]:
    bundle = outcome.bundle
    scores = {name: score for name, score in bundle["benchmark"]["scores"].items() if "value" in score}
    return {
        "benchmark": outcome.entry.label,
        "status": bundle["status"],
        "reason": bundle["reason"],
        "scores": scores,
        "states": bundle["benchmark"]["states"],
        "bundle": str(outcome.path),
    }


def _exit_code(outcome: suite.Outcome) -> int:
    return 1 if outcome.bundle["status"] == "failed" else 0


def _write_snapshot(loaded: Loaded, folder: Path, existing: Existing) -> None:
    """The composed config with secrets masked and ${VAR} as written; a resumed run keeps the first one."""
    path = folder / SNAPSHOT
    if existing == "resume" and path.exists():
        return
    header = f"# nel {nemo_evaluator.__version__}, {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n"
    with replacing(path) as file:
        file.write((header + yaml.safe_dump(masked(loaded.composed), sort_keys=False, allow_unicode=True)).encode())
