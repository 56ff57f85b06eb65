"""What a user copies from the API reference runs as it is printed there."""

from nemo_evaluator.engine import ModelClient, run_evaluation, write_all
from nemo_evaluator.environments import (
    EvalEnvironment,
    ScorerInput,
    SeedResult,
    VerifyResult,
    benchmark,
    register,
    scorer,
)
from nemo_evaluator.environments.registry import resolve
from nemo_evaluator.solvers import ChatSolver, CompletionSolver, Solver, SolveResult
from tests.fakes.openai_server import FakeServer


@register("my_benchmark")
class MyBenchmark(EvalEnvironment):
    def __init__(self):
        super().__init__()
        self._dataset = [("What is 2+2?", "4"), ("What is 3+3?", "6")]

    def __len__(self) -> int:
        return len(self._dataset)

    async def seed(self, idx: int) -> SeedResult:
        question, answer = self._dataset[idx]
        return SeedResult(
            prompt=question, expected_answer=answer, metadata={"response": 1, "expected": 2, "sandbox": 3}
        )

    async def verify(self, response: str, expected: str, **metadata) -> VerifyResult:
        return VerifyResult(reward=1.0 if expected in response else 0.0, extracted_answer=response)


async def test_the_environment_of_the_reference_runs_with_a_chat_solver(tmp_path):
    async with FakeServer(answer="4") as server:
        client = ModelClient(base_url=server.url, model="azure/openai/gpt-5.2", api_key="sk-...", max_concurrent=16)
        response = await client.chat("What is 2+2?", system="Answer briefly.")
        assert response.content == "4"
        bundle = await run_evaluation(MyBenchmark(), ChatSolver(client), n_repeats=4)
        await client.close()
    write_all(bundle, tmp_path / "eval_results")
    written = {path.name for path in (tmp_path / "eval_results").iterdir()}
    assert {"results.jsonl", "trajectories.jsonl", "runtime_stats.json", "failure_analysis.json"} < written
    assert bundle["benchmark"]["name"] == "my_benchmark"
    assert bundle["benchmark"]["scores"]["mean_reward"]["value"] == 0.5


async def test_positional_arguments_keep_their_places():
    async with FakeServer(answer="4") as server, ModelClient(server.url) as client:
        bundle = await run_evaluation(
            MyBenchmark(), CompletionSolver(client), 2, 2, {"note": "mine"}, None, (0, 1), 4, None, (0, 2)
        )
    assert bundle["n_results"] == 2 and bundle["config"]["note"] == "mine"


class Parrot(Solver):
    async def solve(self, task: SeedResult) -> SolveResult:
        return SolveResult(response=task.expected_answer)


class Duck:
    async def solve(self, task):
        return SolveResult(task.expected_answer)


async def test_a_users_solver_needs_solve_and_nothing_else():
    for solver in (Parrot(), Duck()):
        bundle = await run_evaluation(MyBenchmark(), solver)
        assert bundle["benchmark"]["scores"]["pass@1"]["value"] == 1.0


async def test_a_declared_benchmark_runs():
    @benchmark(
        "capitals of the example",
        dataset=lambda: [{"country": "France", "target": "Paris", "response": "x"}],
        prompt="{country}?",
    )
    @scorer
    def exact(sample: ScorerInput):
        return {"correct": sample.response == sample.target, "extracted": sample.response}

    bundle = await run_evaluation(resolve("capitals of the example"), Parrot())
    assert bundle["benchmark"]["scores"]["mean_reward"]["value"] == 1.0
    assert bundle["results"][0]["prompt"] == "France?"
