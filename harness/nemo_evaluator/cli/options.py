"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Command = Callable[..., Any]


def which_run(command: Command) -> Command:
    """A run by its id, or by its folder."""
    command = click.option("--run-id", "-r", help="A run by its id; else the newest of --output-dir.")(command)
    return click.option(
        "--output-dir",
        "-o",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("./eval_results"),
        show_default=True,
        help="Folder of the run.",
    )(command)


def endpoint(command: Command) -> Command:
    """Which model to ask. Their variables are read by whoever knows that no config file says otherwise."""
    for option in reversed(
        (
            click.option("--model-url", help="Model API base URL, with or without /v1."),
            click.option("--model-id", help="Model identifier."),
            click.option("--api-key", help="Model API key; NEMO_API_KEY keeps it out of the process list."),
        )
    ):
        command = option(command)
    return command
