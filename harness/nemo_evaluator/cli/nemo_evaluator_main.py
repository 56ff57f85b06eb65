"""`nemo-evaluator`: the two commands of every harness image."""

from collections.abc import Sequence
from typing import NoReturn

import click

import nemo_evaluator
from nemo_evaluator.cli.errors import run
from nemo_evaluator.cli.lazy import Lazy, LazyGroup

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


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    run(cli, "nemo-evaluator", arguments)


if __name__ == "__main__":
    main()
