"""`nel eval logs`."""

import time
from collections import deque
from pathlib import Path

import click

from nemo_evaluator.cli.options import which_run
from nemo_evaluator.cli.runs import find_run
from nemo_evaluator.errors import UsageError

FOLLOW_SECONDS = 0.5


@click.command()
@which_run
@click.option("--tail", "-n", type=click.IntRange(min=0), default=50, show_default=True, help="Last lines to show.")
@click.option("--follow", "-f", is_flag=True, help="Go on until the run ends.")
def logs(run_id: str | None, output_dir: Path, tail: int, follow: bool) -> None:
    """The log of a background run."""
    record = find_run(run_id, output_dir)
    if record.log is None or not Path(record.log).exists():
        raise UsageError(f"Run {record.run_id} has no log: only runs started with --background write one.")
    with Path(record.log).open(encoding="utf-8", errors="replace") as lines:
        click.echo("".join(deque(lines, maxlen=tail)), nl=False)
        while follow:
            is_running = record.is_running
            click.echo(lines.read(), nl=False)
            if not is_running:
                break
            time.sleep(FOLLOW_SECONDS)
