"""`nel cache-sqsh`: hands its arguments to the launcher, which knows registries, clusters and SSH."""

import os
import sys

import click

MODULE = "nemotron.cli.sqsh"


@click.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def cache_sqsh(arguments: tuple[str, ...]) -> None:
    """As another program in this one's place: the two packages meet on a command line only."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", MODULE, *arguments])
