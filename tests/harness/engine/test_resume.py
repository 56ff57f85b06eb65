"""Nothing finished is lost, nothing finished is asked again, and no other model can inherit an answer."""

import asyncio
import json
from collections import Counter

import pytest

from nemo_evaluator.engine import ModelClient, ProgressTracker, run_evaluation, write_all
from nemo_evaluator.engine.journal import ANSWERS, SCORES
from nemo_evaluator.errors import ResumeMismatch, RunFailed, UsageError
from nemo_evaluator.models import RetryPolicy
from nemo_evaluator.solvers import ChatSolver
from nemo_evaluator.types import VerifyResult
from tests.fakes.openai_server import Behaviour, FakeServer, When
from tests.harness.engine.worlds import Calculator, Doubles, right_answer


def solver(server, **generation):
    return ChatSolver(ModelClient(server.url, "fake-model", "", retry=RetryPolicy.bounded(0), **generation))


class StopAfter(ProgressTracker):
    """Sets the stop event once n samples are settled."""

    def __init__(self, n):
        self.left, self.event = n, asyncio.Event()

    def settled(self, sample):
        self.left -= 1
        if self.left == 0:
            self.event.set()


async def run_part(env, some_solver, folder, n, **kwargs):
    watch = StopAfter(n)
    return await run_evaluation(env, some_solver, output_dir=folder, progress=watch, stop=watch.event, **kwargs)


def rows(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


async def test_a_stopped_run_leaves_a_partial_bundle_that_says_so(tmp_path):
    bundle = await run_part(Doubles(1000), Calculator(delay=0.005), tmp_path, 10, max_concurrent=2)
    assert bundle["status"] == "interrupted" and "--resume" in bundle["reason"]
    assert 10 <= bundle["n_results"] < 1000
    assert bundle["benchmark"]["states"]["not_asked"] > 0
    assert bundle["benchmark"]["scores"]["mean_reward"]["value"] == 1.0


async def test_a_stop_that_comes_after_the_last_sample_interrupts_nothing(tmp_path):
    bundle = await run_part(Doubles(5), Calculator(), tmp_path, 5, max_concurrent=1)
    assert bundle["status"] == "completed"


async def test_resume_asks_only_what_is_missing(tmp_path):
    first, second = Calculator(delay=0.005), Calculator()
    await run_part(Doubles(50), first, tmp_path, 10, max_concurrent=2)
    bundle = await run_evaluation(Doubles(50), second, output_dir=tmp_path, existing="resume")
    answered = {row["problem_idx"] for row in rows(tmp_path, ANSWERS) if "state" in row} - set(second.asked)
    assert bundle["status"] == "completed"
    assert sorted(second.asked) == sorted(set(range(50)) - answered)


async def test_a_resumed_bundle_equals_an_unbroken_one(tmp_path):
    """RM-12: tokens and all, but for times."""
    async with FakeServer(answer=right_answer) as server:
        unbroken = await run_evaluation(Doubles(40), solver(server), n_repeats=2, output_dir=tmp_path / "whole")
        await run_part(Doubles(40), solver(server), tmp_path / "broken", 25, n_repeats=2, max_concurrent=4)
        resumed = await run_evaluation(
            Doubles(40), solver(server), n_repeats=2, output_dir=tmp_path / "broken", existing="resume"
        )
    assert timeless(resumed) == timeless(unbroken)


def timeless(bundle):
    text = json.dumps({**bundle, "results": list(bundle["results"]), "trajectories": list(bundle["trajectories"])})
    content = json.loads(text)
    for key in ("run_id", "timestamp"):
        del content[key]
    content["config"].pop("max_concurrent")
    runtime = content["benchmark"]["scores"]["runtime"]
    for key in ("elapsed_seconds", "latency_percentiles_ms", "tokens_per_second", "steps_per_second", "endpoint"):
        del runtime[key]
    for row in content["results"]:
        del row["latency_ms"]
    for row in content["trajectories"]:
        del row["timing"], row["timestamp"], row["model"]["latency_ms"]
    return content


async def test_errors_are_asked_again_and_the_rest_is_not(tmp_path):
    """EC-03."""
    failing = Behaviour(status=429, when=When(prompt="Problem 7:"))
    async with FakeServer(failing, answer=right_answer) as server:
        failed = await run_evaluation(Doubles(10), solver(server), output_dir=tmp_path)
        assert failed["status"] == "failed"
        server.reset_log()
        server.control(behaviours=[])
        bundle = await run_evaluation(Doubles(10), solver(server), output_dir=tmp_path, existing="resume")
    assert server.prompts == ["Problem 7: what is 7 + 7?"]
    assert bundle["status"] == "completed" and bundle["n_results"] == 10


async def test_resuming_a_finished_run_asks_nothing(tmp_path):
    """RM-05."""
    await run_evaluation(Doubles(10), Calculator(), output_dir=tmp_path)
    again = Calculator()
    bundle = await run_evaluation(Doubles(10), again, output_dir=tmp_path, existing="resume")
    assert again.asked == [] and bundle["benchmark"]["scores"]["mean_reward"]["value"] == 1.0


class Mendable(Doubles):
    is_broken = True

    async def verify(self, response, expected, **metadata):
        if self.is_broken:
            raise RuntimeError("not written yet")
        return await super().verify(response, expected, **metadata)


async def test_answers_without_a_score_are_only_verified(tmp_path):
    """RM-05: the scorer failed on all; once it is mended, no question is asked twice."""
    env, again = Mendable(10), Calculator()
    await run_evaluation(env, Calculator(), output_dir=tmp_path)
    env.is_broken = False
    bundle = await run_evaluation(env, again, output_dir=tmp_path, existing="resume")
    assert again.asked == []
    assert bundle["benchmark"]["states"] == {"scored": 10}


async def test_answers_are_on_disk_before_they_are_scored(tmp_path):
    class Peeking(Doubles):
        async def verify(self, response, expected, **metadata):
            on_disk = [row for row in rows(tmp_path, ANSWERS) if row.get("problem_idx") == int(expected) // 2]
            return VerifyResult(float(len(on_disk) == 1 and on_disk[0]["response"] == response))

    bundle = await run_evaluation(Peeking(20), Calculator(), output_dir=tmp_path)
    assert bundle["benchmark"]["scores"]["mean_reward"]["value"] == 1.0


async def test_a_run_can_be_extended(tmp_path):
    """Limits and repeats change which questions are asked, never an answer."""
    await run_evaluation(Doubles(20), Calculator(), max_problems=5, output_dir=tmp_path)
    again = Calculator()
    bundle = await run_evaluation(Doubles(20), again, n_repeats=2, output_dir=tmp_path, existing="resume")
    assert Counter(again.asked) == Counter(range(20)) + Counter(range(5, 20))
    assert bundle["n_results"] == 40


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model": "other-model"}, "solver.model: 'fake-model' in the journal, 'other-model' now"),
        ({"temperature": 0.7}, "solver.generation.temperature: 0.0 in the journal, 0.7 now"),
        ({"seed": 1}, "solver.generation.seed: unset in the journal, 1 now"),
        ({"max_tokens": 5}, "solver.generation.max_tokens: unset in the journal, 5 now"),
        ({"system_prompt": "Be brief."}, "solver.system_prompt: unset in the journal, 'Be brief.' now"),
        ({"prompt": "{i}+{i}?"}, "prompts: 'sha256:"),
        ({"size": 11}, "dataset.size: 10 in the journal, 11 now"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
async def test_a_changed_setting_never_inherits_answers(tmp_path, change, named):
    """7.1 item 3: it used to report the old model's score under the new model's name."""

    def parts(model="fake-model", temperature=0.0, system_prompt=None, size=10, prompt="What is {i} + {i}?", **rest):
        client = ModelClient(server.url, model, "", temperature=temperature, **rest)
        return Doubles(size, prompt), ChatSolver(client, system_prompt)

    async with FakeServer(answer=right_answer) as server:
        await run_evaluation(*parts(), output_dir=tmp_path)
        before, asked = (tmp_path / ANSWERS).read_bytes(), server.count
        with pytest.raises(ResumeMismatch) as refused:
            await run_evaluation(*parts(**change), output_dir=tmp_path, existing="resume")
        assert server.count == asked
    assert named in str(refused.value) and "--overwrite" in str(refused.value)
    assert (tmp_path / ANSWERS).read_bytes() == before


async def test_a_model_that_moved_to_another_address_keeps_its_answers(tmp_path):
    """RM-06: a restarted job finds its model on another node."""
    async with FakeServer(answer=right_answer) as old:
        await run_part(Doubles(20), solver(old), tmp_path, 5, max_concurrent=1)
    async with FakeServer(answer=right_answer) as new:
        bundle = await run_evaluation(Doubles(20), solver(new), output_dir=tmp_path, existing="resume")
    assert set(old.prompts[:5]).isdisjoint(new.prompts)
    assert len(bundle["provenance"]["endpoints"]) == 2 and bundle["n_results"] == 20


async def test_a_folder_with_results_is_refused(tmp_path):
    """RS-01."""
    await run_evaluation(Doubles(5), Calculator(), output_dir=tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(UsageError, match=r"already contains results.*--resume.*--overwrite"):
        await run_evaluation(Doubles(5), Calculator(), output_dir=tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


async def test_overwrite_replaces_results_and_spares_what_is_not_ours(tmp_path):
    write_all(await run_evaluation(Doubles(5), Calculator(), output_dir=tmp_path), tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    again = Calculator(wrong=frozenset(range(5)), name="another model")
    write_all(await run_evaluation(Doubles(5), again, output_dir=tmp_path, existing="overwrite"), tmp_path)
    assert len(again.asked) == 5
    assert len(list(tmp_path.glob("eval-*.json"))) == 1
    assert (tmp_path / "notes.txt").read_text() == "mine"


async def test_a_resumed_run_has_one_bundle(tmp_path):
    """7.7 item 88: older bundles used to stay beside the new one."""
    write_all(await run_part(Doubles(20), Calculator(), tmp_path, 5, max_concurrent=1), tmp_path)
    bundle = await run_evaluation(Doubles(20), Calculator(), output_dir=tmp_path, existing="resume")
    written = write_all(bundle, tmp_path)
    assert list(tmp_path.glob("eval-*.json")) == [written]
    assert json.loads(written.read_text())["status"] == "completed"


@pytest.mark.parametrize("name", [ANSWERS, SCORES])
async def test_a_torn_last_line_costs_at_most_its_own_sample(tmp_path, name):
    await run_evaluation(Doubles(10), Calculator(), output_dir=tmp_path)
    log = tmp_path / name
    lines = [line for line in log.read_bytes().splitlines(keepends=True) if b"session_end" not in line]
    log.write_bytes(b"".join(lines)[:-20])
    again = Calculator()
    bundle = await run_evaluation(Doubles(10), again, output_dir=tmp_path, existing="resume")
    assert bundle["benchmark"]["states"] == {"scored": 10} and len(again.asked) <= 1


@pytest.mark.parametrize("name", [ANSWERS, SCORES])
@pytest.mark.parametrize(
    "damage",
    [lambda line: bytes(len(line) - 1) + b"\n", lambda line: line[:-9] + bytes(8) + b"\n", lambda line: line[9:]],
    ids=["zeros", "zeros at the end", "no beginning"],
)
async def test_a_damaged_line_costs_at_most_its_own_sample(tmp_path, caplog, name, damage):
    """What a machine that lost its power leaves."""
    await run_evaluation(Doubles(10), Calculator(), output_dir=tmp_path)
    log = tmp_path / name
    lines = log.read_bytes().splitlines(keepends=True)
    lines[5] = damage(lines[5])
    log.write_bytes(b"".join(lines))
    again = Calculator()
    bundle = await run_evaluation(Doubles(10), again, output_dir=tmp_path, existing="resume")
    assert bundle["benchmark"]["states"] == {"scored": 10} and len(again.asked) == (name == ANSWERS)
    assert [row["problem_idx"] for row in bundle["results"]] == list(range(10))
    assert name == ANSWERS or "1 damaged lines are passed over" in caplog.text


async def test_samples_that_are_in_the_journal_twice_count_once_and_stand_in_order(tmp_path):
    """RM-09: the last line of each counts, and lines of problems that are not asked now count for nothing."""
    await run_evaluation(Doubles(10), Calculator(), output_dir=tmp_path)
    for name in (ANSWERS, SCORES):
        log = tmp_path / name
        lines = [line for line in log.read_bytes().splitlines(keepends=True) if b'"problem_idx"' in line]
        log.write_bytes(log.read_bytes() + b"".join(reversed(lines)))
    bundle = await run_evaluation(Doubles(10), Calculator(), max_problems=7, output_dir=tmp_path, existing="resume")
    assert [row["problem_idx"] for row in bundle["results"]] == list(range(7))
    assert bundle["n_results"] == 7 and bundle["benchmark"]["scores"]["mean_reward"]["n"] == 7


async def test_the_answer_of_a_fatal_stop_is_asked_again(tmp_path):
    async with FakeServer(Behaviour(status=401, when=When(first=1)), answer=right_answer) as server:
        with pytest.raises(RunFailed):
            await run_evaluation(Doubles(5), solver(server), output_dir=tmp_path, max_concurrent=1)
        bundle = await run_evaluation(Doubles(5), solver(server), output_dir=tmp_path, existing="resume")
    assert bundle["benchmark"]["states"] == {"scored": 5}


async def test_two_runs_cannot_write_one_folder(tmp_path):
    slow = asyncio.create_task(run_evaluation(Doubles(4), Calculator(delay=0.5), output_dir=tmp_path))
    while not (tmp_path / ANSWERS).exists():
        await asyncio.sleep(0.01)
    with pytest.raises(UsageError, match="is being written by process"):
        await run_evaluation(Doubles(4), Calculator(), output_dir=tmp_path, existing="resume")
    assert (await slow)["n_results"] == 4
