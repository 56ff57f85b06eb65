"""`nel`: run and inspect evaluations."""

from collections.abc import Sequence
from typing import NoReturn

import click

import nemo_evaluator
from nemo_evaluator.cli.errors import run
from nemo_evaluator.cli.lazy import Lazy, LazyGroup

EVAL = LazyGroup(
    "eval",
    {
        "run": Lazy("nemo_evaluator.cli.eval_run:run", "Run an evaluation: a benchmark, or a suite from a YAML file."),
        "status": Lazy("nemo_evaluator.cli.eval_status:status", "How far a run is."),
        "logs": Lazy("nemo_evaluator.cli.eval_logs:logs", "The log of a background run."),
        "stop": Lazy("nemo_evaluator.cli.eval_stop:stop", "Stop a run; what it finished is kept."),
    },
    help="Run evaluations and look after them.",
)


class Root(LazyGroup):
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return EVAL if cmd_name == "eval" else super().get_command(ctx, cmd_name)


cli = click.version_option(nemo_evaluator.__version__, prog_name="nel")(
    Root(
        "nel",
        {
            "eval": Lazy("", "Run evaluations and look after them."),
            "list": Lazy("nemo_evaluator.cli.list:list_benchmarks", "Show available benchmarks."),
            "validate": Lazy("nemo_evaluator.cli.validate:validate", "Try a benchmark on a few samples."),
            "compare": Lazy("nemo_evaluator.cli.compare:compare", "Compare two results folders of direct mode."),
            "cache-sqsh": Lazy(
                "nemo_evaluator.cli.cache_sqsh:cache_sqsh", "Have an image as a .sqsh file on a cluster."
            ),
        },
        help="Evaluate language models behind OpenAI-compatible endpoints.",
    )
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    run(cli, "nel", arguments)


if __name__ == "__main__":
    main()
