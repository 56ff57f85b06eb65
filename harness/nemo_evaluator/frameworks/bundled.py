"""One task of this project's own: the engine asks, and the files of a hosted harness stand beside the engine's."""

import asyncio
import json
import resource
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from nemo_evaluator import suite
from nemo_evaluator.api.api_dataclasses import (
    EvaluationResult,
    GroupResult,
    MetricResult,
    Score,
    ScoreStats,
    TaskResult,
)
from nemo_evaluator.config.load import load_config
from nemo_evaluator.config.model import EvalConfig
from nemo_evaluator.config.quick import Flags
from nemo_evaluator.engine.progress import ProgressTracker
from nemo_evaluator.errors import UsageError
from nemo_evaluator.frameworks.files import Measured, write_metrics, write_results, write_run_config
from nemo_evaluator.frameworks.hosted import proxy_of, reachable
from nemo_evaluator.frameworks.settings import RunConfig


async def run_bundled(
    run: RunConfig, environ: Mapping[str, str], stop: asyncio.Event, say: Callable[[str], None]
) -> int:
    """0 when the bundle is completed. A folder with answers to the same questions is continued."""
    eval_config(run, environ)  # refuses before anything is written
    proxy = proxy_of(run, environ)
    started = datetime.now(UTC)
    async with reachable(run, proxy, once=0) as through:
        prepared = await suite.prepare(eval_config(through, environ), run.output_dir)
        entry = replace(prepared[0], folder=run.output_dir)
        suite.check([entry], "resume")
        write_run_config(run)
        (outcome,) = await suite.run([entry], "resume", {entry.label: ProgressTracker()}, stop, lambda _: None)
    bundle = outcome.bundle
    say(" ".join(filter(None, (f"{run.config.type}: {bundle['status']}", bundle["reason"], str(outcome.path)))))
    if bundle["status"] != "completed":
        return 1
    write_results(run, "", result_of(bundle))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    measured = Measured(started, datetime.now(UTC), peak, peak)
    write_metrics(run, measured, proxy.metrics() if proxy is not None else {})
    return 0


def eval_config(run: RunConfig, environ: Mapping[str, str]) -> EvalConfig:
    """The config that `nel eval run` would be given."""
    params, name = run.params, run.endpoint.api_key_name
    if isinstance(params.limit_samples, float):
        raise UsageError(f"config.params.limit_samples {params.limit_samples} must be a whole number of samples here.")
    flags = Flags(
        bench=params.task,
        max_problems=params.limit_samples,
        model_url=run.endpoint.url,
        model_id=run.endpoint.model_id,
        api_key=environ[name] if name else "",
        temperature=params.temperature,
        max_tokens=params.max_new_tokens,
        output_dir=run.config.output_dir,
    )
    return load_config(None, flags=flags, overrides=list(_overrides(run)), environ=environ).config


def _overrides(run: RunConfig) -> list[str]:
    params = run.params
    wanted = {
        "services.model.generation.top_p": params.top_p,
        "services.model.proxy.max_retries": params.max_retries,
        "services.model.proxy.request_timeout": params.request_timeout,
        "benchmarks[0].max_concurrent": params.parallelism,
        "benchmarks[0].params": params.extra or None,
    }
    return [f"{key}={json.dumps(value)}" for key, value in wanted.items() if value is not None]


def result_of(bundle: Mapping[str, Any]) -> EvaluationResult:
    """The bundle's scores that have a value, in the shape that results.yml has for every harness."""
    benchmark = bundle["benchmark"]
    metrics = {
        name: MetricResult(scores={name: Score(value=score["value"], stats=_stats(score))})
        for name, score in benchmark["scores"].items()
        if isinstance(score, dict) and score.get("value") is not None
    }
    return EvaluationResult(
        tasks={benchmark["name"]: TaskResult(metrics=metrics)},
        groups={benchmark["name"]: GroupResult(metrics=metrics)},
    )


def _stats(score: Mapping[str, Any]) -> ScoreStats:
    return ScoreStats(count=score["n"], mean=score["value"], stderr=score["stderr"])
