"""`nemotron`: run steps where a profile says, and look after what was submitted."""

import sys
from collections.abc import Sequence

import click

import nemotron
from nemotron.cli.lazy import Commands, Later
from nemotron.errors import LauncherError

STEPS = Commands(
    "steps",
    "List, show and run steps.",
    {
        "list": Later("nemotron.cli.steps", "list_steps", "The steps there are."),
        "show": Later("nemotron.cli.steps", "show_step", "The contract of a step."),
        "run": Later("nemotron.cli.run", "run_step", "Run a step: here, or under a profile of env.toml."),
    },
)

cli = click.version_option(nemotron.__version__, prog_name="nemotron")(
    Commands(
        "nemotron",
        "Run evaluation steps on this machine, in containers or on clusters.",
        {
            "steps": Later("nemotron.cli.main", "STEPS", "List, show and run steps."),
            "jobs": Later("nemotron.cli.jobs", "jobs", "Look after submitted jobs."),
            "images": Later("nemotron.cli.images", "images", "Ask registries about images: digests, tasks."),
        },
    )
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Errors that a user is meant to read are one line on stderr."""
    try:
        cli.main(args=None if arguments is None else list(arguments), prog_name="nemotron")
    except LauncherError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        click.echo(f"Error: {error.filename or 'input/output'}: {error.strerror or error}.", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
