"""`nemo-evaluator`: the two commands of every harness image."""

import sys
from collections.abc import Sequence

import click

import nemo_evaluator
from nemo_evaluator.cli.lazy import Lazy, LazyGroup
from nemo_evaluator.errors import EvaluationError, UsageError

cli = click.version_option(nemo_evaluator.__version__, prog_name="nemo-evaluator")(
    LazyGroup(
        "nemo-evaluator",
        {
            "ls": Lazy("nemo_evaluator.cli.harness_ls:ls", "List the tasks of every harness installed here."),
            "run_eval": Lazy("nemo_evaluator.cli.harness_run_eval:run_eval", "Run one task against an endpoint."),
        },
        help="Run evaluation harnesses: installed wheels, and the benchmarks of this project.",
    )
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Errors that a user can mend end in one line and exit code 2, a task that cannot go on in exit code 1."""
    try:
        cli.main(args=None if arguments is None else list(arguments), prog_name="nemo-evaluator")
    except EvaluationError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2 if isinstance(error, UsageError) else 1)


if __name__ == "__main__":
    main()
