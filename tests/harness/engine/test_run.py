"""What becomes of samples: one state each, and a score that no error can lower in silence."""

import asyncio
import gc
import json
import time
from collections import Counter

import pytest

from nemo_evaluator.engine import ModelClient, ProgressTracker, run_evaluation, write_all
from nemo_evaluator.errors import RunFailed, UsageError
from nemo_evaluator.models import RetryPolicy
from nemo_evaluator.solvers import ChatSolver, SolveResult
from nemo_evaluator.types import SeedResult, VerifyResult
from tests.fakes.openai_server import Behaviour, FakeServer, When
from tests.harness.engine.worlds import Calculator, Doubles, right_answer


def chat(server, **settings):
    return ChatSolver(ModelClient(server.url, "fake-model", "", retry=RetryPolicy.bounded(0), **settings))


async def test_the_score_is_the_mean_reward_of_all_samples():
    bundle = await run_evaluation(Doubles(10), Calculator(wrong=frozenset({3, 4})))
    scores = bundle["benchmark"]["scores"]
    assert scores["mean_reward"]["value"] == scores["pass@1"]["value"] == 0.8
    assert bundle["benchmark"]["states"] == {"scored": 10}
    assert bundle["status"] == "completed"


async def test_results_come_in_problem_order_whatever_ended_first():
    bundle = await run_evaluation(Doubles(20), Calculator(), n_repeats=2, shuffle_seed=1)
    assert [(row["problem_idx"], row["repeat"]) for row in bundle["results"]] == [
        (i, r) for i in range(20) for r in (0, 1)
    ]


async def test_every_answer_is_scored_against_its_own_question():
    """EC-08: under concurrency and random delays, an answer must never meet another problem."""
    async with FakeServer(Behaviour(jitter=0.02), answer=right_answer) as server, ModelClient(server.url) as client:
        bundle = await run_evaluation(Doubles(200), ChatSolver(client), max_concurrent=64)
    assert bundle["benchmark"]["scores"]["mean_reward"]["value"] == 1.0


async def test_errors_are_never_rewards():
    """RS-02: the score over answered samples, the score over all, and the count of errors stand side by side."""
    failing = Behaviour(status=500, when=When(prompt="Problem 7:"))
    async with FakeServer(failing, answer=right_answer) as server:
        bundle = await run_evaluation(Doubles(10), chat(server), max_error_rate=0.2)
    scores = bundle["benchmark"]["scores"]
    assert scores["mean_reward"]["value"] == 1.0
    assert scores["mean_reward_over_all"]["value"] == 0.9
    assert bundle["benchmark"]["states"] == {"scored": 9, "error:server": 1}
    assert bundle["results"][7]["reward"] is None and "500" in bundle["results"][7]["error"]


@pytest.mark.parametrize(("rate", "status"), [(0.1, "completed"), (0.05, "failed")])
async def test_too_many_errors_make_the_run_failed(rate, status):
    """EC-03."""
    failing = Behaviour(status=429, when=When(prompt="Problem 7:"))
    async with FakeServer(failing, answer=right_answer) as server:
        bundle = await run_evaluation(Doubles(10), chat(server), max_error_rate=rate)
    assert bundle["status"] == status
    if status == "failed":
        assert "1 of 10 samples ended in errors (rate_limit 1)" in bundle["reason"] and "--resume" in bundle["reason"]
        assert "The first: HTTP 429: Rate limit reached, please slow down. Mend" in bundle["reason"]


KINDS = [
    ("rate_limit", Behaviour(status=429)),
    ("timeout", Behaviour(hang="headers")),
    ("connection", Behaviour(drop="headers")),
    ("server", Behaviour(status=500)),
    ("bad_reply", Behaviour(reply="html")),
    ("context_length", Behaviour(status=400, body={"error": {"message": "maximum context length is 8 tokens"}})),
    ("content_filter", Behaviour(status=400, body={"error": {"code": "content_filter", "message": "filtered"}})),
]


@pytest.mark.parametrize(("kind", "behaviour"), KINDS, ids=[kind for kind, _ in KINDS])
async def test_each_kind_of_error_has_its_name(kind, behaviour):
    async with FakeServer(behaviour) as server:
        bundle = await run_evaluation(Doubles(1), chat(server, timeout=0.3), max_error_rate=1)
    assert bundle["benchmark"]["states"] == {f"error:{kind}": 1}
    assert bundle["benchmark"]["scores"]["mean_reward"]["value"] is None


@pytest.mark.parametrize(
    ("status", "kind", "next_step"),
    [(401, "auth", "NEMO_API_KEY"), (403, "auth", "NEMO_API_KEY"), (404, "not_found", "the model's name or the URL")],
)
async def test_a_refusal_that_meets_everyone_stops_the_run_at_once(status, kind, next_step):
    """7.1 item 11: an endpoint that answers 401 to everything once made a score of 0.0 with exit code 0."""
    async with FakeServer(Behaviour(status=status)) as server:
        with pytest.raises(RunFailed) as failed:
            await run_evaluation(Doubles(500), chat(server), max_concurrent=4)
        assert server.count <= 8
    assert failed.value.bundle["status"] == "failed"
    assert failed.value.bundle["benchmark"]["scores"]["mean_reward"]["value"] is None
    assert f"error:{kind}" in failed.value.bundle["benchmark"]["states"]
    assert "\n" not in str(failed.value) and next_step in str(failed.value) and "--resume" in str(failed.value)


async def test_an_endpoint_that_nobody_reaches_stops_the_run_at_once():
    """It used to take the retries of every sample, minutes for a benchmark of usual size, and did not say why."""
    async with FakeServer() as gone:
        url = gone.url
    client = ModelClient(url, "fake-model", "", retry=RetryPolicy.bounded(0), max_concurrent=4)
    began = time.monotonic()
    with pytest.raises(
        RunFailed,
        match=r"/v1/chat/completions: cannot connect to 127.0.0.1:\d+: Connection refused. Go on with --resume",
    ) as failed:
        await run_evaluation(Doubles(500), ChatSolver(client), max_concurrent=4)
    assert client.stats()["requests"] <= 8
    runtime = failed.value.bundle["benchmark"]["scores"]["runtime"]
    assert runtime["elapsed_seconds"] <= time.monotonic() - began


async def test_a_host_that_nobody_knows_is_named():
    client = ModelClient("http://nohost.invalid", "fake-model", "", retry=RetryPolicy.bounded(0))
    with pytest.raises(RunFailed, match=r"cannot connect to nohost.invalid:80: [A-Z][\w ]+\. ") as failed:
        await run_evaluation(Doubles(5), ChatSolver(client))
    assert "Unknown error" not in str(failed.value)


async def test_an_endpoint_that_goes_away_costs_the_samples_that_are_left():
    """It may come back: a load balancer, a restarted server. What was answered says that the address is right."""

    class GoesAway(ProgressTracker):
        async def stop(self):
            await server.stop()

        def settled(self, sample):
            if sample.problem_idx == 4:
                self.stopping = asyncio.ensure_future(self.stop())

    server = FakeServer(Behaviour(delay=0.05), answer=right_answer)
    await server.start()
    watching, solver = GoesAway(), chat(server)
    bundle = await run_evaluation(Doubles(40), solver, max_concurrent=1, progress=watching)
    await watching.stopping
    assert bundle["status"] == "failed" and bundle["benchmark"]["states"]["scored"] >= 5
    assert bundle["benchmark"]["states"]["error:connection"] > 20


async def test_a_cut_answer_is_scored_and_counted_as_truncated():
    async with FakeServer(Behaviour(shape={"finish_reason": "length"}), answer=right_answer) as server:
        bundle = await run_evaluation(Doubles(4), chat(server))
    assert bundle["benchmark"]["states"] == {"truncated": 4}
    assert bundle["benchmark"]["scores"]["mean_reward"]["value"] == 1.0


async def test_an_empty_answer_is_a_state_of_its_own():
    async with FakeServer(answer="  ") as server:
        bundle = await run_evaluation(Doubles(4), chat(server))
    assert bundle["benchmark"]["states"] == {"empty": 4}
    assert bundle["benchmark"]["scores"]["failures"]["categories"]["empty"]["count"] == 4


class OneScorerFails(Doubles):
    async def verify(self, response, expected, **metadata):
        if expected == "4":
            raise ZeroDivisionError("the scorer has a bug")
        return await super().verify(response, expected, **metadata)


async def test_a_scorer_that_fails_costs_its_sample_and_no_second_request():
    """7.1 item 22."""
    solver = Calculator()
    bundle = await run_evaluation(OneScorerFails(5), solver, max_error_rate=0.2)
    assert Counter(solver.asked) == Counter(range(5))
    assert bundle["benchmark"]["states"] == {"scored": 4, "error:scorer": 1}
    assert bundle["results"][2]["error"].startswith("ZeroDivisionError: the scorer has a bug (")
    assert bundle["results"][2]["model_response"] == "The answer is 4."


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), None, "good"])
async def test_a_reward_that_is_no_number_is_a_scorer_error(reward):
    class Strange(Doubles):
        async def verify(self, response, expected, **metadata):
            return VerifyResult(reward)

    bundle = await run_evaluation(Strange(1), Calculator(), max_error_rate=1)
    assert bundle["benchmark"]["states"] == {"error:scorer": 1}


class OneSeedFails(Doubles):
    async def seed(self, idx):
        if idx == 3:
            raise KeyError("no such row")
        return await super().seed(idx)


async def test_a_seed_that_fails_costs_its_sample_only():
    """7.1 item 23: it used to abort the run and leave tasks writing to closed logs."""
    bundle = await run_evaluation(OneSeedFails(5), Calculator(), max_error_rate=0.2)
    assert bundle["benchmark"]["states"] == {"scored": 4, "error:seed": 1}


class Failing(Calculator):
    async def solve(self, task):
        if "Problem 1:" in task.prompt:
            raise RuntimeError("the agent crashed")
        if "Problem 2:" in task.prompt:
            return SolveResult("", error="sandbox lost", error_kind="connection")
        return await super().solve(task)


async def test_a_solver_that_fails_costs_its_samples_only():
    bundle = await run_evaluation(Doubles(4), Failing(), max_error_rate=1)
    assert bundle["benchmark"]["states"] == {"scored": 2, "error:solver": 1, "error:connection": 1}
    assert bundle["results"][1]["error"].startswith("RuntimeError: the agent crashed (")


async def test_a_solver_that_takes_too_long_is_a_timeout():
    bundle = await run_evaluation(Doubles(1), Calculator(delay=60), sample_timeout=0.05, max_error_rate=1)
    assert bundle["results"][0]["state"] == "error:timeout"


async def test_a_reward_of_the_solver_is_taken_as_it_is():
    class Graded(Calculator):
        async def solve(self, task):
            return SolveResult("done", reward=0.5, scoring_details={"steps": 3})

    env = Doubles(2)
    bundle = await run_evaluation(env, Graded())
    assert env.verified == []
    assert bundle["results"][0]["reward"] == 0.5 and bundle["results"][0]["scoring_details"]["steps"] == 3


async def test_fractional_rewards_keep_the_mean_and_drop_pass_at_k():
    """7.1 item 12: mean_reward is there for every run, so that runs can always be compared."""

    class Partial(Doubles):
        async def verify(self, response, expected, **metadata):
            return VerifyResult(0.25)

    bundle = await run_evaluation(Partial(4), Calculator())
    assert bundle["benchmark"]["scores"]["mean_reward"]["value"] == 0.25
    assert "pass@1" not in bundle["benchmark"]["scores"]


async def test_repeats_give_pass_at_n_over_problems():
    class Flaky(Calculator):
        async def solve(self, task):
            answer = await super().solve(task)
            return answer if task.repeat == 0 else SolveResult("no idea")

    bundle = await run_evaluation(Doubles(6), Flaky(), n_repeats=4)
    scores = bundle["benchmark"]["scores"]
    assert (scores["pass@1"]["value"], scores["pass@4"]["value"]) == (0.25, 1.0)
    assert bundle["benchmark"]["samples"] == 6 and bundle["n_results"] == 24


async def test_every_repeat_sends_its_own_seed():
    """7.1 item 13: the same seed for each repeat makes n copies of one sample."""
    async with FakeServer(answer=right_answer) as server, ModelClient(server.url, seed=7) as client:
        await run_evaluation(Doubles(2), ChatSolver(client), n_repeats=3)
    assert Counter(body["seed"] for body in server.bodies) == Counter({7: 2, 8: 2, 9: 2})


@pytest.mark.parametrize(
    ("temperature", "repeats", "warned"), [(0.0, 4, True), (0.0, 1, False), (0.7, 4, False), (None, 4, False)]
)
async def test_repeats_at_temperature_0_are_warned_of(caplog, temperature, repeats, warned):
    """7.1 item 13."""
    async with FakeServer(answer=right_answer) as server, ModelClient(server.url, temperature=temperature) as client:
        await run_evaluation(Doubles(1), ChatSolver(client), n_repeats=repeats)
    said = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert said == (["Doubles: at temperature 0, 4 repeats are mostly copies."] if warned else [])


async def test_a_system_prompt_reaches_the_model_and_the_trajectory():
    """7.1 item 1: it was dropped in silence where the benchmark set messages."""

    class WithMessages(Doubles):
        async def seed(self, idx):
            seed = await super().seed(idx)
            return SeedResult(
                seed.prompt, seed.expected_answer, seed.metadata, [{"role": "user", "content": seed.prompt}]
            )

    async with FakeServer(answer=right_answer) as server, ModelClient(server.url) as client:
        bundle = await run_evaluation(WithMessages(1), ChatSolver(client, system_prompt="Be brief."))
    assert server.bodies[0]["messages"][0] == {"role": "system", "content": "Be brief."}
    assert bundle["trajectories"][0]["system_prompt"] == "Be brief."


async def test_a_system_prompt_of_the_solver_replaces_the_benchmarks_own():
    class WithSystem(Doubles):
        async def seed(self, idx):
            seed = await super().seed(idx)
            return SeedResult(seed.prompt, seed.expected_answer, seed.metadata, system="Think first.")

    async with FakeServer(answer=right_answer) as server, ModelClient(server.url) as client:
        await run_evaluation(WithSystem(1), ChatSolver(client))
        await run_evaluation(WithSystem(1), ChatSolver(client, system_prompt="Be brief."))
    systems = [body["messages"][0]["content"] for body in server.bodies]
    assert systems == ["Think first.", "Be brief."]


async def test_missing_usage_stays_unknown():
    async with FakeServer(Behaviour(shape={"usage": "missing"}), answer=right_answer) as server:
        bundle = await run_evaluation(Doubles(2), chat(server))
    assert bundle["benchmark"]["scores"]["runtime"]["total_tokens"] is None
    assert bundle["results"][0]["tokens"] is None


async def test_provenance_says_where_the_number_comes_from():
    """7.7 item 87."""
    async with FakeServer(answer=right_answer) as server:
        url = server.url.replace("http://", "http://user:secret@")
        client = ModelClient(url + "?key=secret", "fake-model", "", temperature=0.5, max_tokens=64, seed=3)
        bundle = await run_evaluation(Doubles(1), ChatSolver(client, "Be brief."))
    provenance = bundle["provenance"]
    assert provenance["solver"]["generation"] == {"temperature": 0.5, "max_tokens": 64, "seed": 3}
    assert provenance["solver"]["system_prompt"] == "Be brief."
    assert provenance["solver"]["model"] == bundle["config"]["model"] == "fake-model"
    assert provenance["dataset"]["size"] == 1
    assert provenance["packages"]["nemo-evaluator"] == bundle["sdk_version"]
    assert bundle["config"]["base_url"].endswith(f"127.0.0.1:{server.port}/v1/chat/completions?key=***")
    assert "secret" not in json.dumps({key: bundle[key] for key in bundle if key not in ("results", "trajectories")})


async def test_the_limiter_is_visible_in_the_runtime_stats():
    async with FakeServer(Behaviour(delay=0.02), answer=right_answer) as server:
        bundle = await run_evaluation(Doubles(20), chat(server, max_concurrent=5), max_concurrent=16)
    limiter = bundle["benchmark"]["scores"]["runtime"]["endpoint"]["limiter"]
    assert limiter["max_limit"] == 5 and limiter["peak_in_flight"] == 5
    assert server.peak_in_flight == 5


async def test_config_entries_of_the_caller_are_in_the_bundle():
    bundle = await run_evaluation(Doubles(1), Calculator(), config={"note": "first try", "repeats": 99})
    assert bundle["config"]["note"] == "first try" and bundle["config"]["repeats"] == 1


async def test_secrets_in_the_config_of_the_caller_are_masked(tmp_path):
    """7.6 item 74: bundles are shared."""
    canary = "sk-not-a-real-key-0123456789"
    config = {"api_key": canary, "sandbox": {"container_env": {"HF_TOKEN": canary}}, "url": f"http://me:{canary}@host"}
    bundle = await run_evaluation(Doubles(1), Calculator(), config=config, output_dir=tmp_path)
    write_all(bundle, tmp_path)
    assert bundle["config"]["sandbox"] == {"container_env": {"HF_TOKEN": "***"}}
    assert not [path for path in tmp_path.iterdir() if canary in path.read_text()]
    assert config["api_key"] == canary


async def test_secrets_of_a_solver_are_in_no_file_and_still_told_apart(tmp_path):
    """What a user's own solver calls its identity is in the journal and in the bundle."""

    class Keyed(Calculator):
        def identity(self):
            return {"solver": self.name, "api_key": "sk-not-a-real-key-0123456789", "stop_token_ids": [7]}

    bundle = await run_evaluation(Doubles(1), Keyed(), output_dir=tmp_path)
    write_all(bundle, tmp_path)
    assert bundle["provenance"]["solver"]["stop_token_ids"] == [7]
    assert not [path for path in tmp_path.iterdir() if "sk-not-a-real-key" in path.read_text()]
    again = await run_evaluation(Doubles(1), Keyed(), output_dir=tmp_path, existing="resume")
    assert again["n_results"] == 1


async def test_an_environment_without_problems_is_no_score():
    bundle = await run_evaluation(Doubles(0), Calculator())
    assert bundle["benchmark"]["scores"]["mean_reward"]["value"] is None


async def test_answers_that_are_numbers_are_written_as_text(tmp_path):
    """A benchmark that says `expected_answer=4` works, and its files keep their schema."""

    class Numbers(Doubles):
        async def seed(self, idx):
            seed = await super().seed(idx)
            seed.expected_answer = 2 * idx
            return seed

        async def verify(self, response, expected, **metadata):
            return VerifyResult(float(str(expected) in response), expected)

    bundle = await run_evaluation(Numbers(3), Calculator())
    assert bundle["benchmark"]["scores"]["mean_reward"]["value"] == 1.0
    assert (bundle["results"][2]["expected_answer"], bundle["results"][2]["extracted_answer"]) == ("4", "4")


async def test_progress_is_told_of_every_sample(tmp_path):
    class Watching(ProgressTracker):
        def __init__(self):
            self.told = []

        def start(self, benchmark, ledger):
            self.told.append((benchmark, len(ledger.plan)))

        def settled(self, sample):
            self.told.append((sample.problem_idx, sample.state, sample.reward))

        def finish(self):
            self.told.append("finished")

    watching = Watching()
    await run_evaluation(Doubles(2), Calculator(wrong=frozenset({1})), progress=watching, max_concurrent=1)
    assert watching.told == [("Doubles", 2), (0, "scored", 1.0), (1, "scored", 0.0), "finished"]


async def test_files_of_a_run_without_a_folder_go_when_its_rows_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    bundle = await run_evaluation(Doubles(2), Calculator())
    assert len(bundle["results"]) == 2 and any(tmp_path.iterdir())
    write_all(bundle, tmp_path / "kept")
    del bundle
    async with asyncio.timeout(10):
        while [path.name for path in tmp_path.iterdir()] != ["kept"]:
            gc.collect()
            await asyncio.sleep(0.01)  # the thread that made the bundle lets go of it a moment later


async def test_unknown_limits_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(UsageError):
        await run_evaluation(Doubles(2), Calculator(), problem_range=(0, 9), output_dir=tmp_path / "out")
    assert not (tmp_path / "out").exists()


async def test_a_judge_gives_the_reward_and_its_failure_is_an_error(tmp_path):
    class Judged(Doubles):
        async def verify(self, response, expected, **metadata):
            async def rule(client):
                if expected == "2":
                    raise ValueError("the judge said nothing")
                return {"reward": 0.75, "said": client}

            return VerifyResult(0.0, scoring_details={"needs_judge": True, "_judge_fn": rule})

    bundle = await run_evaluation(Judged(3), Calculator(), judge_client="the judge", max_error_rate=1)
    assert [row["reward"] for row in bundle["results"]] == [0.75, None, 0.75]
    assert bundle["results"][1]["state"] == "error:scorer"
    without = await run_evaluation(Judged(1), Calculator(), max_error_rate=1)
    assert without["results"][0]["state"] == "error:scorer" and "judge_client" in without["results"][0]["error"]


async def test_seed_results_may_be_reused_by_the_environment():
    class Cached(Doubles):
        async def seed(self, idx):
            self.cache = getattr(self, "cache", {})
            if idx not in self.cache:
                self.cache[idx] = await super().seed(idx)
            return self.cache[idx]

    seen = []

    class Watching(Calculator):
        async def solve(self, task):
            seen.append(task.repeat)
            return await super().solve(task)

    await run_evaluation(Cached(1), Watching(), n_repeats=3)
    assert sorted(seen) == [0, 1, 2]
    assert SeedResult("x").repeat == 0
