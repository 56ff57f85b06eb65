"""`nel validate`."""

import logging
import os
import sys
from typing import Any

import click

from nemo_evaluator.cli import loop
from nemo_evaluator.cli.options import endpoint
from nemo_evaluator.engine import ModelClient, run_evaluation
from nemo_evaluator.engine.contract import beforehand
from nemo_evaluator.environments import EvalEnvironment
from nemo_evaluator.environments.registry import resolve
from nemo_evaluator.errors import RunFailed, UsageError
from nemo_evaluator.solvers import ChatSolver, CompletionSolver


@click.command()
@click.option("--benchmark", "--bench", "-b", "benchmark", required=True, help="Benchmark to validate.")
@click.option("--samples", "-s", type=click.IntRange(min=1), default=5, show_default=True, help="Number of samples.")
@endpoint
@click.option("--verbose", "-v", is_flag=True, help="Enable verbose logging.")
def validate(
    benchmark: str, samples: int, model_url: str | None, model_id: str | None, api_key: str | None, verbose: bool
) -> None:
    """Try a benchmark: its scorer on the right answers and, given a model, a few requests.

    Exits with 1 if the scorer refuses a right answer or accepts an empty one, or if a request fails.
    """
    logging.basicConfig(level=logging.DEBUG if verbose else logging.WARNING)
    model_url, model_id = model_url or os.environ.get("NEMO_MODEL_URL"), model_id or os.environ.get("NEMO_MODEL_ID")
    if bool(model_url) != bool(model_id):
        raise UsageError(
            "--model-url and --model-id belong together: give both to ask a model, neither to check the scorer."
        )
    is_valid = loop.run(_validate(resolve(benchmark), samples, model_url, model_id, api_key))
    sys.exit(0 if is_valid else 1)


async def _validate(
    env: EvalEnvironment, samples: int, model_url: str | None, model_id: str | None, api_key: str | None
) -> bool:
    with beforehand("Loading the benchmark"):
        await env.prepare()
        samples = min(samples, await env.dataset_size())
    with beforehand("The benchmark on its own answers"):
        is_scorer_right = await _check_scorer(env, samples)
    if model_url is None or model_id is None:
        click.echo("No model was asked: give --model-url and --model-id.")
        return is_scorer_right
    return await _check_requests(env, samples, ModelClient(model_url, model_id, api_key)) and is_scorer_right


async def _check_scorer(env: EvalEnvironment, samples: int) -> bool:
    """The right answer must score 1.0, an empty one nothing."""
    faults = 0
    for idx in range(samples):
        seed = await env.seed(idx)
        for name, response, wanted in (("right", await env.gold_response(idx), 1.0), ("empty", "", 0.0)):
            if response is None:
                continue
            reward = (await env.verify_sample(seed, response)).reward
            if reward != wanted:
                faults += 1
                click.echo(f"[FAIL] p{idx}: the {name} answer {response!r} scores {reward:g}, not {wanted:g}")
    click.echo(
        f"scorer: {'right' if not faults else f'{faults} faults'} on the gold and empty answers of {samples} problems"
    )
    return not faults


async def _check_requests(env: EvalEnvironment, samples: int, client: ModelClient) -> bool:
    solver = (CompletionSolver if env.endpoint_type == "completions" else ChatSolver)(client)
    click.echo(f"asking {solver.endpoint}")
    try:
        bundle = await run_evaluation(env, solver, max_problems=samples)
    except RunFailed as failed:
        assert failed.bundle is not None  # the journal is in a fresh folder: only the endpoint can have refused
        bundle = failed.bundle
    finally:
        await client.close()
    rows = list(bundle["results"])
    for row in rows:
        click.echo(_sample_line(row))
    click.echo(f"{sum((row['reward'] or 0) > 0 for row in rows)}/{samples} correct")
    if bundle["reason"]:
        click.echo(f"Error: {bundle['reason']}", err=True)
    return not any(row["error"] for row in rows)


def _sample_line(row: dict[str, Any]) -> str:
    if row["error"]:
        return f"[ERROR] p{row['problem_idx']}: {row['state']}: {row['error']}"
    verdict = "PASS" if row["reward"] > 0 else "FAIL"
    tokens = "" if row["tokens"] is None else f", {row['tokens']:,} tok"
    return (
        f"[{verdict}] p{row['problem_idx']}: expected={row['expected_answer']!r} got={row['extracted_answer']!r} "
        f"({row['latency_ms']:,.0f} ms{tokens})"
    )
