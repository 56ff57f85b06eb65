"""A run that outlives its shell."""

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import click

from nemo_evaluator.cli.runs import LOG, LOG_VARIABLE, RUN_ID_VARIABLE, RunRecord, is_on_record, store

STARTING_SECONDS = 10.0
"""After this long a run that has neither begun nor failed is left to itself: datasets may be large."""


def start_in_background(record: RunRecord) -> None:
    """Start this very command again, detached; it gets its arguments on stdin, where `ps` does not show them."""
    record.folder.mkdir(parents=True, exist_ok=True)
    log = record.folder / LOG
    with log.open("ab") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "nemo_evaluator.cli.detached"],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=os.environ | {RUN_ID_VARIABLE: record.run_id, LOG_VARIABLE: str(log)},
            start_new_session=True,
        )
    assert child.stdin is not None
    child.stdin.write(json.dumps([word for word in sys.argv[1:] if word != "--background"]).encode())
    child.stdin.close()
    _wait_for_start(child, record, log)
    click.echo(f"Run {record.run_id} goes on in the background, process {child.pid}.")
    which = f"-r {record.run_id}" if (store() / record.run_id).exists() else f"-o {shlex.quote(str(record.folder))}"
    for command in ("status", "logs -f", "stop"):
        click.echo(f"  nel eval {command} {which}")


def _wait_for_start(child: subprocess.Popen[bytes], record: RunRecord, log: Path) -> None:
    """Exits with the child's code and last words if it refuses to run."""
    deadline = time.monotonic() + STARTING_SECONDS
    while time.monotonic() < deadline and not is_on_record(record.run_id, record.folder):
        if child.poll() is not None:
            click.echo(log.read_text(encoding="utf-8", errors="replace").rstrip().rsplit("\n", 1)[-1], err=True)
            _leave_nothing(record.folder)
            sys.exit(child.returncode)
        time.sleep(0.05)


def _leave_nothing(folder: Path) -> None:
    """A folder in which there is nothing but the log of a refusal was made for it."""
    if [entry.name for entry in folder.iterdir()] == [LOG]:
        (folder / LOG).unlink()
        folder.rmdir()
