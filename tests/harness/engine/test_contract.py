"""Whatever code of others does or returns costs its sample, in one line, and never the run."""

import asyncio
import contextlib

import pytest

from nemo_evaluator.engine import ProgressTracker, run_evaluation
from nemo_evaluator.errors import UsageError
from nemo_evaluator.solvers import SolveResult
from nemo_evaluator.types import SeedResult, VerifyResult
from tests.harness.engine.worlds import Calculator, Doubles


class Unspeakable:
    """Even looking at it fails."""

    def __repr__(self):
        raise RuntimeError("no repr")

    __str__ = __float__ = __repr__


class UnspeakableError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


async def cancelled_from_within():
    """What a library does whose inner task was cancelled."""
    inner = asyncio.ensure_future(asyncio.sleep(600))
    inner.cancel()
    await inner


class OneSeed(Doubles):
    """Problem 1 is made by `act`."""

    def __init__(self, act):
        super().__init__(4)
        self.act = act

    async def seed(self, idx):
        return await super().seed(idx) if idx != 1 else await self.act()


class OneVerdict(Doubles):
    def __init__(self, act):
        super().__init__(4)
        self.act = act

    async def verify(self, response, expected, **metadata):
        return await super().verify(response, expected, **metadata) if expected != "2" else await self.act()


class OneSolution(Calculator):
    def __init__(self, act):
        super().__init__()
        self.act = act

    async def solve(self, task):
        return await super().solve(task) if "Problem 1:" not in task.prompt else await self.act()


async def run_with(stage, act):
    env = {"seed": OneSeed, "scorer": OneVerdict}.get(stage, lambda _: Doubles(4))(act)
    solver = OneSolution(act) if stage == "solver" else Calculator()
    async with asyncio.timeout(60):
        return await run_evaluation(env, solver, max_error_rate=1, max_concurrent=2)


async def returns(value):
    return value


async def raises(error):
    raise error


STAGES = ["seed", "solver", "scorer"]


@pytest.mark.parametrize("stage", STAGES)
async def test_a_cancellation_of_its_own_making_costs_the_sample(stage):
    """The run used to wait for ever for a sample that nobody had in hand any more."""
    bundle = await run_with(stage, cancelled_from_within)
    assert bundle["benchmark"]["states"] == {"scored": 3, f"error:{stage}": 1}
    assert bundle["results"][1]["error"].startswith("CancelledError: (")


@pytest.mark.parametrize("stage", STAGES)
async def test_sys_exit_costs_the_sample(stage):
    bundle = await run_with(stage, lambda: raises(SystemExit(3)))
    assert bundle["results"][1]["error"].startswith("SystemExit: 3 (")
    assert bundle["benchmark"]["states"]["scored"] == 3


@pytest.mark.parametrize("stage", STAGES)
async def test_an_error_without_words_costs_the_sample(stage):
    bundle = await run_with(stage, lambda: raises(UnspeakableError()))
    assert bundle["results"][1]["error"].startswith("UnspeakableError: (its message cannot be shown)")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("value", [None, "text", 0.5, {"reward": 1.0}, Unspeakable()], ids=lambda v: type(v).__name__)
async def test_a_value_of_another_type_costs_the_sample_and_is_named(stage, value):
    bundle = await run_with(stage, lambda: returns(value))
    assert bundle["benchmark"]["states"] == {"scored": 3, f"error:{stage}": 1}
    wanted = {"seed": "a SeedResult", "solver": "a SolveResult", "scorer": "a VerifyResult"}[stage]
    assert bundle["results"][1]["error"].endswith(f"a {type(value).__name__}: it must be {wanted}")


FIELDS = [
    ("seed", SeedResult(None), "seed: prompt is None, a NoneType: it must be text"),
    ("seed", SeedResult("p", metadata=[1]), "seed: metadata is [1], a list: it must be a dict"),
    ("seed", SeedResult("p", messages="hi"), "seed: messages is 'hi', a str: it must be a list of messages, or None"),
    ("seed", SeedResult("p", system=7), "seed: system is 7, a int: it must be text, or None"),
    ("solver", SolveResult(None), "solve: response is None, a NoneType: it must be text"),
    ("solver", SolveResult("a", {}), "solve: model_response is {}, a dict: it must be a ModelResponse, or None"),
    ("solver", SolveResult("a", scoring_details=3), "solve: scoring_details is 3, a int: it must be a dict"),
    ("solver", SolveResult("a", reward="1"), "solve: reward is '1': a reward is a finite number"),
    ("scorer", VerifyResult(1.0, None, 7), "verify: scoring_details is 7, a int: it must be a dict"),
    ("scorer", VerifyResult(1.0, metadata=[]), "verify: metadata is [], a list: it must be a dict"),
]  # fmt: skip


@pytest.mark.parametrize(("stage", "value", "said"), FIELDS, ids=[said.partition(" is ")[0] for _, _, said in FIELDS])
async def test_a_field_of_another_type_is_named(stage, value, said):
    bundle = await run_with(stage, lambda: returns(value))
    assert bundle["results"][1]["error"] == said
    assert bundle["benchmark"]["states"] == {"scored": 3, f"error:{stage}": 1}


REWARDS = [
    (float("nan"), "reward is nan: a reward is a finite number"),
    (float("-inf"), "reward is -inf: a reward is a finite number"),
    (None, "reward is None: a reward is a finite number"),
    ("1.0", "reward is '1.0': a reward is a finite number"),
    ([1.0], "reward is [1.0]: a reward is a finite number"),
    ("x" * 500, f"reward is '{'x' * 79}...: a reward is a finite number"),
    (Unspeakable(), "reward is a Unspeakable whose repr fails: a reward is a finite number"),
]


@pytest.mark.parametrize(("reward", "said"), REWARDS, ids=range(len(REWARDS)))
async def test_a_reward_that_is_no_finite_number_costs_the_sample_and_is_named(reward, said):
    bundle = await run_with("scorer", lambda: returns(VerifyResult(reward)))
    assert bundle["results"][1]["error"] == said
    assert bundle["results"][1]["reward"] is None


@pytest.mark.parametrize("reward", [True, 1, 1.0])
async def test_any_kind_of_number_is_a_reward(reward):
    bundle = await run_with("scorer", lambda: returns(VerifyResult(reward)))
    assert bundle["benchmark"]["scores"]["mean_reward"]["value"] == 1.0


class Stubborn(Calculator):
    """Takes no notice of being cancelled."""

    async def solve(self, task):
        self.asked.append(0)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(600)
        return SolveResult("too late")


class StubbornSeeds(Doubles):
    async def seed(self, idx):
        if len(self.seeded) >= 32:  # 16 of them for the fingerprint
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(600)
        return await super().seed(idx)


async def test_a_run_ends_although_a_benchmark_takes_no_notice():
    env, stop = StubbornSeeds(400), asyncio.Event()
    running = asyncio.create_task(run_evaluation(env, solver := Calculator(delay=0.01), max_concurrent=2, stop=stop))
    while len(solver.asked) < 16:
        await asyncio.sleep(0.01)
    stop.set()
    assert (await asyncio.wait_for(running, 180))["status"] == "interrupted"


async def test_a_run_ends_when_it_is_cancelled():
    running = asyncio.create_task(run_evaluation(Doubles(4), solver := Calculator(delay=600)))
    while not solver.asked:
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 180)


async def test_a_run_ends_although_a_solver_takes_no_notice():
    stop, solver = asyncio.Event(), Stubborn()
    running = asyncio.create_task(run_evaluation(Doubles(40), solver, max_concurrent=2, stop=stop))
    while len(solver.asked) < 2:
        await asyncio.sleep(0.01)
    stop.set()
    bundle = await asyncio.wait_for(running, 180)
    assert bundle["status"] == "interrupted" and len(solver.asked) == 2


def failing(*_, **__):
    raise KeyError("boom")


async def failing_later(*_):
    raise KeyError("boom")


@pytest.mark.parametrize(
    ("name", "act"),
    [("prepare", failing_later), ("dataset_size", failing_later), ("__len__", failing), ("provenance", failing)],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_benchmark_that_cannot_begin_is_refused_in_one_line(name, act):
    env = type("Broken", (Doubles,), {name: act})(4)
    with pytest.raises(UsageError, match=r"^[^\n]+ fails: KeyError: 'boom' \([^\n]+test_contract.py:\d+\)$"):
        await run_evaluation(env, solver := Calculator())
    assert solver.asked == []


async def test_a_solver_that_cannot_tell_what_it_is_is_refused_in_one_line():
    solver = type("Broken", (Calculator,), {"identity": failing})()
    with pytest.raises(UsageError, match=r"identity\) fails: KeyError: 'boom'"):
        await run_evaluation(Doubles(4), solver)


async def test_what_is_no_solver_is_refused():
    with pytest.raises(UsageError, match=r"^A dict is no solver: it has no async method solve\(task\)\.$"):
        await run_evaluation(Doubles(4), {"solve": 1})


@pytest.mark.parametrize(("name", "act"), [("rest", failing_later), ("stats", failing)], ids=["rest", "stats"])
async def test_a_solver_that_fails_when_all_is_done_costs_no_answer(caplog, name, act):
    bundle = await run_evaluation(Doubles(4), type("Broken", (Calculator,), {name: act})())
    assert bundle["benchmark"]["states"] == {"scored": 4}
    assert f"The solver's {name} fails: KeyError: 'boom'" in caplog.text


@pytest.mark.parametrize("name", ["start", "settled", "finish"])
async def test_a_progress_tracker_that_fails_is_told_no_more(caplog, name):
    tracker = type("Broken", (ProgressTracker,), {name: failing})()
    bundle = await run_evaluation(Doubles(4), Calculator(), progress=tracker)
    assert bundle["benchmark"]["states"] == {"scored": 4}
    assert caplog.text.count(f"its {name} fails: KeyError: 'boom'") == 1
