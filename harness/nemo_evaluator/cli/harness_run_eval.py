"""`nemo-evaluator run_eval`."""

import logging
import os
import sys
from pathlib import Path
from typing import Any

import click

from nemo_evaluator.cli import loop
from nemo_evaluator.cli.signals import StopOnSignal
from nemo_evaluator.frameworks.bundled import run_bundled
from nemo_evaluator.frameworks.files import shown_yaml
from nemo_evaluator.frameworks.hosted import run_hosted, shown_command
from nemo_evaluator.frameworks.settings import Flags, RunConfig, resolve, wishes

ENDPOINT_TYPES = ("chat", "completions", "completions_logprob", "embedding")


@click.command("run_eval")
@click.option("--eval_type", help="Task, as `nemo-evaluator ls` names it; HARNESS.TASK where two have it.")
@click.option("--model_id", help="Name of the model, as the endpoint serves it.")
@click.option("--model_type", type=click.Choice(ENDPOINT_TYPES), help="What the endpoint is.")
@click.option("--model_url", help="Full URL of the endpoint, such as http://HOST/v1/chat/completions.")
@click.option("--output_dir", help="Where results go.")
@click.option("--api_key_name", help="Name of the environment variable that holds the key.")
@click.option("--run_config", type=click.Path(path_type=Path), help="YAML file; flags and --overrides win over it.")
@click.option("--overrides", multiple=True, metavar="KEY=VALUE,...", help="Win over the file and over other flags.")
@click.option("--dry_run", is_flag=True, help="Show the complete configuration and the command; run nothing.")
def run_eval(run_config: Path | None, overrides: tuple[str, ...], dry_run: bool, **flags: Any) -> None:
    """Run one task against an endpoint."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    run = resolve(wishes(run_config, Flags(**flags), overrides), os.environ)
    if dry_run:
        click.echo(f"Rendered config:\n\n{shown_yaml(run)}")
        if run.command:
            click.echo(f"Rendered command:\n\n{shown_command(run)}")
        return
    sys.exit(loop.run(_run(run)))


async def _run(run: RunConfig) -> int:
    stop = StopOnSignal()
    task = run_hosted if run.command else run_bundled
    code = await task(run, os.environ, stop.requested, _say)
    return stop.exit_code or code


def _say(line: str) -> None:
    click.echo(line, err=True)
