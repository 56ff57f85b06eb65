"""`nemotron`: run steps where a profile says, and look after what was submitted."""

from collections.abc import Sequence
from typing import NoReturn

import click

import nemotron
from nemotron.cli.errors import run
from nemotron.cli.lazy import Commands, Later

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
            "doctor": Later("nemotron.cli.doctor", "doctor", "Whether an evaluation can run under a profile."),
            "images": Later("nemotron.cli.images", "images", "Ask registries about images: digests, tasks."),
        },
    )
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    run(cli, "nemotron", arguments)


if __name__ == "__main__":
    main()
