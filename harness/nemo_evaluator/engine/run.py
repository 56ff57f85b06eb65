"""One benchmark against one solver, from plan to bundle."""

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import nemo_evaluator
from nemo_evaluator.engine import provenance
from nemo_evaluator.engine.attempt import Limits, Pipeline
from nemo_evaluator.engine.contract import afterwards, beforehand
from nemo_evaluator.engine.fingerprint import Fingerprint, take_fingerprint
from nemo_evaluator.engine.journal import Existing, History, Journal, replay
from nemo_evaluator.engine.plan import Plan, plan_attempts
from nemo_evaluator.engine.progress import Guarded, ProgressTracker
from nemo_evaluator.engine.records import Records, RunFolder
from nemo_evaluator.environments import EvalEnvironment
from nemo_evaluator.errors import RunFailed
from nemo_evaluator.masking import masked
from nemo_evaluator.models import ModelClient
from nemo_evaluator.results.bundle import RunFacts, make_bundle
from nemo_evaluator.results.rows import result_row, trajectory_row
from nemo_evaluator.solvers.base import Solver, as_solver

log = logging.getLogger(__name__)


async def run_evaluation(
    env: EvalEnvironment,
    solver: Solver,
    n_repeats: int = 1,
    max_problems: int | None = None,
    config: dict[str, Any] | None = None,
    progress: ProgressTracker | None = None,
    problem_range: tuple[int, int] | None = None,
    max_concurrent: int = 32,
    judge_client: ModelClient | None = None,
    shard_info: tuple[int, int] | None = None,
    *,
    shuffle_seed: int | None = None,
    max_error_rate: float = 0.05,
    sample_timeout: float | None = None,
    output_dir: str | Path | None = None,
    existing: Existing = "refuse",
    stop: asyncio.Event | None = None,
) -> dict[str, Any]:
    """The bundle: scores, counts, provenance, and `results` and `trajectories` as sequences read from disk row by row.

    With `output_dir` the journal lives there, and `existing="resume"` continues it. `sample_timeout` (seconds) bounds
    one `solve`. Setting `stop` ends the run early with status "interrupted". Raises RunFailed, with the bundle of what
    was finished, when the endpoint refuses every request or the disk takes no more; UsageError before any request.
    """
    settings = Settings(
        n_repeats, max_problems, problem_range, max_concurrent, shard_info, shuffle_seed, max_error_rate, sample_timeout
    )
    evaluation = await Evaluation.prepare(env, solver, settings, config, judge_client)
    return await evaluation.run(output_dir, existing, progress, stop)


@dataclass(frozen=True, slots=True)
class Settings:
    """How much of a benchmark is asked, and how."""

    n_repeats: int = 1
    max_problems: int | None = None
    problem_range: tuple[int, int] | None = None
    max_concurrent: int = 32
    shard_info: tuple[int, int] | None = None
    shuffle_seed: int | None = None
    max_error_rate: float = 0.05
    """A larger share of errors makes the run failed."""
    sample_timeout: float | None = None
    """Seconds for one `solve`."""

    def plan(self, size: int) -> Plan:
        return plan_attempts(
            size, self.n_repeats, self.max_problems, self.problem_range, self.shard_info, self.shuffle_seed
        )


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A benchmark that is loaded and planned: nothing was asked, nothing written."""

    env: EvalEnvironment
    solver: Solver
    settings: Settings
    plan: Plan
    fingerprint: Fingerprint
    config: dict[str, Any]
    judge_client: ModelClient | None = None

    @classmethod
    async def prepare(
        cls,
        env: EvalEnvironment,
        solver: Solver,
        settings: Settings,
        config: dict[str, Any] | None = None,
        judge_client: ModelClient | None = None,
    ) -> Self:
        """Raises UsageError for a dataset that cannot be had and for limits that make no sense."""
        solver = as_solver(solver)
        with beforehand("Loading the benchmark"):
            await env.prepare()
            size = await env.dataset_size()
            plan = settings.plan(size)
        with beforehand("Telling benchmark and solver from others (provenance, identity)"):
            fingerprint = await take_fingerprint(env, solver, size)
        if settings.n_repeats > 1 and fingerprint.solver.get("generation", {}).get("temperature") == 0:
            log.warning("%s: at temperature 0, %d repeats are mostly copies.", env.name, settings.n_repeats)
        return cls(env, solver, settings, plan, fingerprint, config or {}, judge_client)

    async def run(
        self,
        output_dir: str | Path | None = None,
        existing: Existing = "refuse",
        progress: ProgressTracker | None = None,
        stop: asyncio.Event | None = None,
    ) -> dict[str, Any]:
        """See `run_evaluation`."""
        stop = stop or asyncio.Event()
        folder = RunFolder(Path(output_dir) if output_dir else None)
        journal = await asyncio.to_thread(Journal.open, folder.path, self.fingerprint, existing)
        history = await asyncio.to_thread(replay, folder.path, self.plan)
        earlier_seconds = history.elapsed_seconds
        failure = await _attempt_all(self._pipeline(journal, history, Guarded(progress or ProgressTracker())), stop)
        if failure:  # the ledger may know of lines that never reached the disk
            history = await asyncio.to_thread(replay, folder.path, self.plan)
        facts = RunFacts(
            run_id=journal.run_id,
            benchmark=self.env.name,
            config=self._config(),
            provenance=self._provenance(history),
            states=history.ledger.states(),
            n_repeats=self.settings.n_repeats,
            max_error_rate=self.settings.max_error_rate,
            is_interrupted=stop.is_set(),
            failure=str(failure) if failure else None,
            elapsed_seconds=earlier_seconds + journal.seconds,
            endpoint=self._stats(),
        )
        return await _finish(facts, Records.of(folder, history.ledger), failure)

    def _stats(self) -> dict[str, Any]:
        with afterwards("The solver's stats"):
            return self.solver.stats()
        return {}

    def _pipeline(self, journal: Journal, history: History, progress: ProgressTracker) -> Pipeline:
        limits = Limits(solve=self.settings.max_concurrent)
        timeout, judge = self.settings.sample_timeout, self.judge_client
        return Pipeline(self.env, self.solver, journal, history.ledger, progress, limits, timeout, judge)

    def _config(self) -> dict[str, Any]:
        """The caller's own entries stand beside what was really done, and never replace it."""
        settings, (start, end) = self.settings, self.plan.problem_range
        config: dict[str, Any] = masked(self.config) | {
            "benchmark": self.env.name,
            "model": self.fingerprint.solver.get("model"),
            "base_url": self.solver.endpoint,
            "repeats": settings.n_repeats,
            "max_problems": settings.max_problems,
            "max_concurrent": settings.max_concurrent,
            "max_error_rate": settings.max_error_rate,
            "shuffle_seed": settings.shuffle_seed,
            "dataset_size": self.plan.dataset_size,
            "problem_range": [start, end],
        }
        if settings.shard_info:
            config["shard"] = {"idx": settings.shard_info[0], "total": settings.shard_info[1], "range": [start, end]}
        return config

    def _provenance(self, history: History) -> dict[str, Any]:
        endpoints = dict.fromkeys([*history.endpoints, self.solver.endpoint])
        return {
            "fingerprint_hash": self.fingerprint.digest(),
            "solver": self.fingerprint.solver,
            "dataset": self.fingerprint.dataset,
            "prompt_hash": self.fingerprint.prompts,
            "endpoints": [url for url in endpoints if url],
            **provenance.code(),
        }


async def _attempt_all(pipeline: Pipeline, stop: asyncio.Event) -> RunFailed | None:
    """Until all is settled or `stop` is set; whatever happens, what was finished is on disk afterwards."""
    journal, progress = pipeline.journal, pipeline.progress
    progress.start(pipeline.env.name, pipeline.ledger)
    try:
        async with journal:
            journal.begin_session(pipeline.solver.endpoint)
            try:
                await pipeline.run(stop)
            finally:
                journal.end_session()
    except RunFailed as failure:
        return failure
    finally:
        progress.finish()
        with afterwards("The solver's rest"):
            await pipeline.solver.rest()
    return None


async def _finish(facts: RunFacts, records: Records, failure: RunFailed | None) -> dict[str, Any]:
    bundle = await asyncio.to_thread(make_bundle, facts, records, nemo_evaluator.__version__)
    bundle |= {"results": records.shaped(result_row), "trajectories": records.shaped(trajectory_row)}
    if failure:
        failure.bundle = bundle
        raise failure
    return bundle
