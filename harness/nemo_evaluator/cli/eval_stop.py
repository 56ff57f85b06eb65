"""`nel eval stop`."""

import os
import signal
import time
from pathlib import Path

import click

from nemo_evaluator.cli.options import which_run
from nemo_evaluator.cli.runs import find_run
from nemo_evaluator.errors import RunFailed, UsageError


@click.command()
@which_run
@click.option(
    "--wait", type=click.FloatRange(min=0), default=30.0, show_default=True, help="Seconds to wait for its end."
)
def stop(run_id: str | None, output_dir: Path, wait: float) -> None:
    """Stop a run; what it finished is kept, and --resume continues it."""
    record = find_run(run_id, output_dir)
    if not record.is_here:
        raise UsageError(f"Run {record.run_id} runs on {record.host}: stop it there.")
    if not record.is_running:
        click.echo(f"Run {record.run_id} is not running.")
        return
    os.kill(record.pid, signal.SIGTERM)
    deadline = time.monotonic() + wait
    while record.is_running:
        if time.monotonic() > deadline:
            raise RunFailed(
                f"Run {record.run_id} (process {record.pid}) is still finishing: look again with `nel eval status`."
            )
        time.sleep(0.1)
    click.echo(f"Run {record.run_id} has stopped: continue it with --resume.")
