"""`nemo-evaluator run_eval` over this project's own benchmarks."""

import asyncio

import pytest

from tests.harness.frameworks.conftest import KEY

pytestmark = pytest.mark.timeout(600)


def task(evaluator, server, name="tiny_arithmetic"):
    arguments = list(evaluator.task(name, f"{server.url}/chat/completions"))
    arguments[arguments.index("completions")] = "chat"
    return arguments


async def test_it_leaves_the_files_of_a_harness_beside_the_engine_s(evaluator, server):
    server.control(api_key=KEY)
    keyed = ("--api_key_name", "TOY_TOKEN", "--overrides", "config.params.limit_samples=4,config.params.top_p=0.5")
    await asyncio.to_thread(evaluator, *task(evaluator, server), *keyed, TOY_TOKEN=KEY)
    metrics = evaluator.yaml("results.yml")["results"]["tasks"]["tiny_arithmetic"]["metrics"]
    assert metrics["mean_reward"]["scores"]["mean_reward"]["stats"]["count"] == 4
    assert (server.count, server.bodies[0]["top_p"]) == (4, 0.5)
    files = {path.name for path in (evaluator.folder / "out").iterdir()}
    assert {"run_config.yml", "eval_factory_metrics.json", "results.jsonl", "inference_log.jsonl"} <= files


async def test_a_second_run_goes_on_where_the_first_one_ended(evaluator, server):
    limit = ("--overrides", "config.params.limit_samples=4")
    await asyncio.to_thread(evaluator, *task(evaluator, server), *limit)
    await asyncio.to_thread(evaluator, *task(evaluator, server), *limit)
    assert server.count == 4


async def test_the_adapter_works_for_them_too(evaluator, server):
    config = "config.params.limit_samples=2,target.api_endpoint.adapter_config.params_to_add={user: me}"
    await asyncio.to_thread(evaluator, *task(evaluator, server), "--overrides", config)
    assert {body["user"] for body in server.bodies} == {"me"}


async def test_a_share_of_samples_is_refused(evaluator, server):
    limit = ("--overrides", "config.params.limit_samples=0.5")
    done = await asyncio.to_thread(evaluator, *task(evaluator, server), *limit, code=2)
    assert "limit_samples 0.5 must be a whole number" in done.stderr
    assert not (evaluator.folder / "out").exists()


async def test_behind_the_adapter_retries_are_not_multiplied(evaluator, server):
    server.control(behaviours=[{"status": 503, "retry_after": 0}])
    logged = "target.api_endpoint.adapter_config.use_request_logging=true"
    params = f"config.params.limit_samples=1,config.params.max_retries=2,{logged}"
    await asyncio.to_thread(evaluator, *task(evaluator, server), "--overrides", params, code=1)
    assert server.count == 3
