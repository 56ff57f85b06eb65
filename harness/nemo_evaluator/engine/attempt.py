"""Seed → solve → journal → verify → judge → journal, each stage with workers of its own.

A slow stage never idles the ones before it: answers are on disk before they wait for a verifier, so when too many
wait, only their places in the journal are kept. Memory holds the window in flight, nothing of a finished sample.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from nemo_evaluator.engine.appendlog import Entry
from nemo_evaluator.engine.contract import (
    FAULTS,
    Broken,
    checked_answer,
    checked_seed,
    checked_verdict,
    fault,
    finite,
    is_ending,
)
from nemo_evaluator.engine.journal import Journal
from nemo_evaluator.engine.ledger import ANSWERED, EMPTY, SCORER_ERROR, TRUNCATED, Ledger
from nemo_evaluator.engine.plan import Attempt
from nemo_evaluator.engine.progress import ProgressTracker, Settled
from nemo_evaluator.engine.rows import Seeded, answer_row, error_row, score_row, scorer_error_row
from nemo_evaluator.engine.stock import Stock
from nemo_evaluator.environments import EvalEnvironment
from nemo_evaluator.errors import ERROR_KINDS, FATAL_KINDS, RequestError, RunFailed
from nemo_evaluator.models import ModelClient
from nemo_evaluator.results.jsonl import as_text
from nemo_evaluator.solvers import Solver
from nemo_evaluator.types import SeedResult, SolveResult, VerifyResult

log = logging.getLogger(__name__)

Work = Coroutine[Any, Any, None]

GRACE_SECONDS = 5.0
SEEDED_AHEAD = 64
"""Problems, at most: the first request need not wait for hundreds of seeds."""
WAITING_BYTES = 16 << 20
"""Answers kept in memory for the verifiers; what comes on top waits on disk."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Samples in each stage at once."""

    seed: int = 16
    solve: int = 32
    verify: int = 32
    judge: int = 8


@dataclass(slots=True)
class Answered:
    """An answer on its way to the verifier; without `seed` it waits on disk."""

    attempt: Attempt
    entry: Entry | None = None
    """Its line in the journal; None for an answer of an earlier session."""
    seed: SeedResult | None = None
    response: str = ""
    reward: float | None = None
    scoring_details: dict[str, Any] | None = None


class Pipeline:
    """The attempts of one benchmark on their way through the stages."""

    def __init__(
        self,
        env: EvalEnvironment,
        solver: Solver,
        journal: Journal,
        ledger: Ledger,
        progress: ProgressTracker,
        limits: Limits,
        sample_timeout: float | None = None,
        judge_client: ModelClient | None = None,
    ) -> None:
        self.env, self.solver, self.journal, self.ledger = env, solver, journal, ledger
        self.progress, self.limits = progress, limits
        self.sample_timeout, self.judge_client = sample_timeout, judge_client
        self._to_ask: Iterator[Attempt] = ledger.to_ask()
        self._seeded: Stock[Seeded] = Stock(min(limits.solve, SEEDED_AHEAD))
        self._answered: asyncio.Queue[Answered] = asyncio.Queue()
        self._to_judge: asyncio.Queue[tuple[Attempt, VerifyResult, float]] = asyncio.Queue(maxsize=limits.judge)
        self._waiting_bytes = 0
        self._unsettled = self._unanswered = 0
        self._has_answers = False
        """In this session."""
        self._all_settled = asyncio.Event()

    async def run(self, stop: asyncio.Event | None = None) -> None:
        """Until every attempt is settled, or `stop` is set. Raises RunFailed when going on makes no sense."""
        self._unanswered = self.ledger.unanswered()
        self._unsettled = self._queue_unverified() + self._unanswered
        if not self._unsettled:
            return
        try:
            async with asyncio.TaskGroup() as group:
                askers = [group.create_task(work) for work in self._askers()]
                scorers = [group.create_task(work) for work in self._scorers()]
                await _first_of(self._all_settled, stop or asyncio.Event())
                _cancel(askers)
                await self._score_what_is_answered()
                _cancel(scorers)
        except* RunFailed as failed:
            raise failed.exceptions[0] from None

    async def _score_what_is_answered(self) -> None:
        """When stopped: a verdict is usually quick, and an answer without one waits for --resume."""
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await self._answered.join()
                await self._to_judge.join()

    def _queue_unverified(self) -> int:
        for attempt in self.ledger.to_verify():
            self._answered.put_nowait(Answered(attempt))
        return self._answered.qsize()

    def _askers(self) -> Iterator[Work]:
        yield from (self._seed_all() for _ in range(self.limits.seed))
        yield from (self._solve_all() for _ in range(self.limits.solve))

    def _scorers(self) -> Iterator[Work]:
        yield from (self._verify_all() for _ in range(self.limits.verify))
        yield from (self._judge_all() for _ in range(self.limits.judge))

    # seed

    async def _seed_all(self) -> None:
        for attempt in self._to_ask:  # one iterator, shared by the workers
            if is_ending():
                return
            started = time.perf_counter()
            try:
                seed = checked_seed(await self.env.seed(attempt.problem_idx))
            except FAULTS as error:
                self._no_answer(Seeded(attempt, SeedResult(""), _ms(started)), "seed", fault(error), 0.0)
                continue
            if is_ending():  # and the benchmark has swallowed the news
                return
            if seed.repeat != attempt.repeat:
                seed = replace(seed, repeat=attempt.repeat)
            await self._seeded.put(Seeded(attempt, seed, _ms(started)))

    # solve

    async def _solve_all(self) -> None:
        while not is_ending():
            await self._solve(await self._seeded.take())

    async def _solve(self, seeded: Seeded) -> None:
        """An error that every other request would meet too ends the run: a refused key, a model or an endpoint that is
        not there."""
        started = time.perf_counter()
        try:
            result = checked_answer(await self._solution(seeded.seed))
        except RequestError as error:
            self._no_answer(seeded, error.kind, str(error), _ms(started))
            if error.is_fatal or (error.is_unreachable and not self._has_answers):
                raise RunFailed.for_everyone(error.kind, str(error)) from None
        except FAULTS as error:
            self._no_answer(seeded, "solver", fault(error), _ms(started))
        else:
            if result.error is None:
                await self._answer(seeded, result, _ms(started))
            else:
                self._no_answer(seeded, result.error_kind or "solver", as_text(result.error), _ms(started))
                if result.error_kind in FATAL_KINDS:
                    raise RunFailed.for_everyone(result.error_kind, as_text(result.error))

    async def _solution(self, seed: SeedResult) -> SolveResult:
        if self.sample_timeout is None:
            return await self.solver.solve(seed)
        try:
            async with asyncio.timeout(self.sample_timeout) as deadline:
                return await self.solver.solve(seed)
        except Exception:
            if deadline.expired():
                raise RequestError("timeout", f"no answer within {self.sample_timeout:g} s") from None
            raise

    async def _answer(self, seeded: Seeded, result: SolveResult, model_ms: float) -> None:
        """Journal an answer, then hand it to the verifiers."""
        attempt, state = seeded.attempt, _answer_state(result)
        self._has_answers = True
        entry = self.journal.answer(answer_row(seeded, state, result, model_ms))
        self.ledger.answered(attempt.ordinal, state, entry.offset, entry.length)
        waiting = Answered(attempt, entry)
        if self._waiting_bytes < WAITING_BYTES:
            self._waiting_bytes += entry.length
            waiting.seed, waiting.response = seeded.seed, result.response
            waiting.reward, waiting.scoring_details = result.reward, result.scoring_details
        self._answered.put_nowait(waiting)
        self._one_less_to_ask()
        if self.journal.is_backed_up:
            await entry.durable()

    def _no_answer(self, seeded: Seeded, kind: str, message: str, model_ms: float) -> None:
        attempt, state = seeded.attempt, f"error:{kind if kind in ERROR_KINDS else 'solver'}"
        entry = self.journal.answer(error_row(seeded, state, message, model_ms))
        self.ledger.answered(attempt.ordinal, state, entry.offset, entry.length)
        self._one_less_to_ask()
        self._settle(attempt, state, None)

    def _one_less_to_ask(self) -> None:
        """After the last answer nothing is left to wait for before the disk has it."""
        self._unanswered -= 1
        if not self._unanswered:
            self.journal.flush()

    # verify

    async def _verify_all(self) -> None:
        while not is_ending():
            await self._verify(await self._answered.get())
            self._answered.task_done()

    async def _verify(self, answer: Answered) -> None:
        if answer.entry is not None:
            await answer.entry.durable()
        started = time.perf_counter()
        try:
            verdict = checked_verdict(await self._verdict(answer))
        except FAULTS as error:
            self._no_score(answer.attempt, error, _ms(started))
            return
        finally:
            if answer.seed is not None:
                self._waiting_bytes -= self.ledger.answer_length[answer.attempt.ordinal]
        if verdict.scoring_details.get("needs_judge"):
            await self._to_judge.put((answer.attempt, verdict, started))
        else:
            self._score(answer.attempt, verdict, _ms(started))

    async def _verdict(self, answer: Answered) -> VerifyResult:
        seed, response, reward, details = answer.seed, answer.response, answer.reward, answer.scoring_details
        if seed is None:
            row = self.journal.read_answer(self.ledger, answer.attempt.ordinal)
            response, reward, details = row["response"], row["solver_reward"], row["solver_scoring_details"]
            seed = await self.env.seed(answer.attempt.problem_idx)
        if reward is not None:
            return VerifyResult(reward, scoring_details={"method": "solver", **(details or {})})
        return await self.env.verify_sample(seed, response)

    # judge

    async def _judge_all(self) -> None:
        while not is_ending():
            attempt, verdict, started = await self._to_judge.get()
            try:
                judged = await self._judged(verdict)
            except FAULTS as error:
                self._no_score(attempt, error, _ms(started))
            else:
                self._score(attempt, judged, _ms(started))
            self._to_judge.task_done()

    async def _judged(self, verdict: VerifyResult) -> VerifyResult:
        judge = verdict.scoring_details.get("_judge_fn")
        if self.judge_client is None or judge is None:
            raise ValueError("this benchmark needs a judge and none is configured: pass judge_client=")
        ruling = await judge(self.judge_client)
        details = {
            key: value for key, value in verdict.scoring_details.items() if key not in ("_judge_fn", "needs_judge")
        }
        return replace(verdict, reward=ruling["reward"], scoring_details=details | {"judge": ruling})

    # settle

    def _score(self, attempt: Attempt, verdict: VerifyResult, verify_ms: float) -> None:
        try:
            reward = finite("reward", verdict.reward)
        except Broken as error:
            self._no_score(attempt, error, verify_ms)
            return
        entry = self.journal.score(score_row(attempt, reward, verdict, verify_ms))
        self.ledger.scored(attempt.ordinal, reward, entry.offset, entry.length)
        self._settle(attempt, self.ledger.state(attempt.ordinal), reward)

    def _no_score(self, attempt: Attempt, error: BaseException, verify_ms: float) -> None:
        """The scorer failed: the answer stays in the journal, and --resume scores it without asking again."""
        message = fault(error)
        log.debug("scoring problem %d failed", attempt.problem_idx, exc_info=error)
        entry = self.journal.score(scorer_error_row(attempt, message, verify_ms))
        self.ledger.scored(attempt.ordinal, None, entry.offset, entry.length)
        self._settle(attempt, SCORER_ERROR, None)

    def _settle(self, attempt: Attempt, state: str, reward: float | None) -> None:
        self.progress.settled(Settled(attempt.problem_idx, attempt.repeat, state, reward))
        self._unsettled -= 1
        if not self._unsettled:
            self._all_settled.set()


def _answer_state(result: SolveResult) -> str:
    if result.model_response is not None and result.model_response.finish_reason == "length":
        return TRUNCATED
    return ANSWERED if result.response.strip() else EMPTY


def _ms(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()


async def _first_of(*events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
