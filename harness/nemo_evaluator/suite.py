"""From a config to bundles: environment + solver + client for every benchmark, all side by side."""

import asyncio
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nemo_evaluator.config.model import ApiService, Benchmark, CustomSolver, EvalConfig, effective_generation
from nemo_evaluator.engine.claim import refuse_claimed
from nemo_evaluator.engine.contract import afterwards, beforehand
from nemo_evaluator.engine.journal import Existing, check_folder, safe_name
from nemo_evaluator.engine.progress import ProgressTracker
from nemo_evaluator.engine.run import Evaluation, Settings
from nemo_evaluator.environments import EvalEnvironment
from nemo_evaluator.environments.registry import import_file, resolve
from nemo_evaluator.errors import RunFailed, UsageError
from nemo_evaluator.models import AdaptiveLimiter, Dialects, ModelClient, RetryPolicy
from nemo_evaluator.results.write import write_all
from nemo_evaluator.solvers import ChatSolver, CompletionSolver, Solver
from nemo_evaluator.solvers.base import as_solver

SOLVERS: dict[str, type[ChatSolver | CompletionSolver]] = {
    "chat_completions": ChatSolver,
    "completions": CompletionSolver,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A benchmark of the suite, ready to run."""

    label: str
    """Name of its folder: the benchmark's name, numbered if the suite has it more than once."""
    folder: Path
    evaluation: Evaluation


@dataclass(frozen=True, slots=True)
class Shared:
    """What the clients of a suite know together."""

    limiters: Mapping[str, AdaptiveLimiter]
    """By service."""
    dialects: Dialects


@dataclass(frozen=True, slots=True)
class Outcome:
    entry: Entry
    bundle: dict[str, Any]
    path: Path


async def prepare(config: EvalConfig, output_dir: Path) -> list[Entry]:
    """Load every dataset and make every client; nothing is asked or written. Raises UsageError for what cannot run."""
    shared = Shared(_limiters(config), Dialects())
    solvers = [_solver(config, benchmark, shared) for benchmark in config.benchmarks]
    environments = [resolve(benchmark.name, benchmark.params) for benchmark in config.benchmarks]
    for environment, benchmark in zip(environments, config.benchmarks, strict=True):
        _check_protocol(environment, config, benchmark)
    evaluations = await asyncio.gather(
        *(
            Evaluation.prepare(env, solver, _settings(benchmark), {"suite_entry": index})
            for index, (env, solver, benchmark) in enumerate(zip(environments, solvers, config.benchmarks, strict=True))
        )
    )
    labels = folder_names([evaluation.env.name for evaluation in evaluations])
    return [Entry(label, output_dir / label, evaluation) for label, evaluation in zip(labels, evaluations, strict=True)]


def check(entries: list[Entry], existing: Existing) -> None:
    """Raises UsageError if any folder may not be written, before any is."""
    for entry in entries:
        refuse_claimed(entry.folder)
        check_folder(entry.folder, entry.evaluation.fingerprint, existing)


async def run(
    entries: list[Entry],
    existing: Existing,
    trackers: Mapping[str, ProgressTracker],
    stop: asyncio.Event,
    report: Callable[[Outcome], None],
) -> list[Outcome]:
    """Every entry to its end, `report`ing each as it ends. A benchmark that fails does not end the others."""

    async def run_one(entry: Entry) -> Outcome:
        try:
            bundle = await entry.evaluation.run(entry.folder, existing, trackers[entry.label], stop)
        except RunFailed as failed:
            if failed.bundle is None:
                raise
            bundle = failed.bundle
        finally:
            with afterwards("Closing the solver"):
                await entry.evaluation.solver.close()
            with afterwards("Closing the benchmark"):
                await entry.evaluation.env.close()
        outcome = Outcome(entry, bundle, await asyncio.to_thread(write_all, bundle, entry.folder))
        report(outcome)
        return outcome

    ended = await asyncio.gather(*(run_one(entry) for entry in entries), return_exceptions=True)
    for outcome in ended:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in ended if isinstance(outcome, Outcome)]


def folder_names(names: list[str]) -> list[str]:
    """Unlike folders for all entries: the second gsm8k of a suite is gsm8k_2."""
    taken: set[str] = set()

    def free(name: str) -> str:
        safe = safe_name(name)
        number = 1
        while (folder := safe if number == 1 else f"{safe}_{number}") in taken:
            number += 1
        taken.add(folder)
        return folder

    return [free(name) for name in names]


def _check_protocol(env: EvalEnvironment, config: EvalConfig, benchmark: Benchmark) -> None:
    """A chat template round a text that a base model is to continue makes another benchmark of it."""
    if benchmark.solver.service is None or env.endpoint_type != "completions":
        return
    service = config.services[benchmark.solver.service]
    if service.protocol != "completions":
        raise UsageError(
            f"Benchmark {env.name!r} is written for completions, and service {benchmark.solver.service!r} speaks "
            f"{service.protocol}: ask /v1/completions (protocol: completions), or choose a benchmark written for chat."
        )


def _limiters(config: EvalConfig) -> dict[str, AdaptiveLimiter]:
    """By service. Services at one address share a limiter, which admits as many requests as the keenest of their
    benchmarks asks for, unless max_concurrent_upstream says otherwise."""
    hosts = {name: urlsplit(service.url).netloc for name, service in config.services.items()}
    limits: dict[str, int] = {}
    for name, service in config.services.items():
        wanted = [b.max_concurrent for b in config.benchmarks if b.solver.service == name]
        limit = service.proxy.max_concurrent_upstream or max(wanted, default=1)
        limits[hosts[name]] = max(limits.get(hosts[name], 1), limit)
    limiters = {host: AdaptiveLimiter(limit) for host, limit in limits.items()}
    return {name: limiters[host] for name, host in hosts.items()}


def _solver(config: EvalConfig, benchmark: Benchmark, shared: Shared) -> Solver:
    name = benchmark.solver.service
    if name is None:
        assert isinstance(benchmark.solver, CustomSolver)
        return _custom(benchmark.solver, None)
    client = _client(config, benchmark, config.services[name], shared.limiters[name], shared.dialects)
    if isinstance(benchmark.solver, CustomSolver):
        return _custom(benchmark.solver, client)
    return SOLVERS[config.services[name].protocol](client, benchmark.solver.system_prompt)


def _client(
    config: EvalConfig, benchmark: Benchmark, service: ApiService, limiter: AdaptiveLimiter, dialects: Dialects
) -> ModelClient:
    generation, proxy = effective_generation(config, benchmark), service.proxy
    return ModelClient(
        service.url,
        service.model,
        service.api_key.get_secret_value() if service.api_key else "",
        **generation.model_dump(),
        timeout=proxy.request_timeout,
        max_concurrent=benchmark.max_concurrent,
        retry=RetryPolicy.bounded(proxy.max_retries, benchmark.timeout),
        limiter=limiter,
        dialects=dialects,
        extra_body=proxy.extra_body,
        extra_headers=proxy.extra_headers,
        ca_bundle=service.ca_bundle,
        reasoning_pattern=service.reasoning_pattern,
    )


def _custom(solver: CustomSolver, client: ModelClient | None) -> Solver:
    """`class_path` is pkg.module:Class, pkg.module.Class or path.py:Class, called with the client (if the solver
    names a service) and its config."""
    make = _load(solver.class_path)
    with beforehand(f"Making a {solver.class_path} with its config"):
        return as_solver(make(client, **solver.config) if client else make(**solver.config))


def _load(class_path: str) -> Any:
    place, separator, name = class_path.rpartition(":" if ":" in class_path else ".")
    if not separator:
        raise UsageError(f"class_path {class_path!r} names no class: write pkg.module:Class or path.py:Class.")
    if place.endswith(".py") and not Path(place).is_file():
        raise UsageError(f"class_path {class_path!r} names no file: there is no {Path(place).absolute()}.")
    try:
        module = import_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
        return getattr(module, name)
    except (ImportError, AttributeError, OSError) as error:
        raise UsageError(f"class_path {class_path!r} cannot be loaded: {error}.") from error


def _settings(benchmark: Benchmark) -> Settings:
    is_custom = isinstance(benchmark.solver, CustomSolver)
    return Settings(
        n_repeats=benchmark.repeats,
        max_problems=benchmark.max_problems,
        problem_range=benchmark.problem_range,
        max_concurrent=benchmark.max_concurrent,
        shuffle_seed=benchmark.shuffle_seed,
        max_error_rate=benchmark.max_error_rate,
        # the client of a simple solver keeps the time itself, from when a request is sent
        sample_timeout=benchmark.timeout if is_custom else None,
    )
