"""The runner with the published harness, untouched: what a job in the default harness image does."""

import asyncio
import json
import os
import signal
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.fakes.openai_server import Behaviour, FakeServer
from tests.harness.direct.world import World, build_runner, plan_document, task_document, validate, wait_for

PREFLIGHT_REQUESTS = 1
CANARY = "sk-not-a-real-key-canary-000000"
PARAMS = {
    "limit_samples": 3,
    "parallelism": 2,
    "request_timeout": 60,
    "max_retries": 2,
    "extra": {"tokenizer": "example/small-bpe", "tokenizer_backend": "huggingface", "tokenized_requests": False},
}
ADAPTER = {"use_caching": True, "use_request_logging": True, "max_logged_requests": 10}
GSM8K = task_document("gsm8k", PARAMS, ADAPTER)
MMLU = task_document("mmlu_logits", {**PARAMS, "task": "mmlu_college_mathematics"}, ADAPTER)


class Job:
    """A folder, the runner in it, and an environment that has the harness on PATH and the canary as its token."""

    def __init__(self, root: Path, harness_bin: Path) -> None:
        self.root, self.output = root, root / "results"
        self.runner = build_runner(root / "runner.pyz")
        kept = ("HF_ENDPOINT", "HF_HUB_DISABLE_XET", "HF_HOME")
        self.environ = {name: os.environ[name] for name in kept} | {
            "PATH": f"{harness_bin}:/usr/bin:/bin",
            "HOME": str(root),
            "ENDPOINT_TOKEN": CANARY,
            "NEMO_EVALUATOR_TELEMETRY_LEVEL": "0",
        }

    async def start(self, url, *tasks, model=None, **changes):
        plan = self.root / "plan.json"
        settings = {"endpoint_url": f"{url}/completions", **(model or {})}
        document = plan_document(self.output, tasks, model=settings, preflight=True, **changes)
        plan.write_text(json.dumps(validate("plan", document)))
        return await asyncio.create_subprocess_exec(
            *(sys.executable, str(self.runner), str(plan)),
            env=self.environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    async def run(self, url, *tasks, **changes):
        process = await self.start(url, *tasks, **changes)
        out, _ = await process.communicate()
        return process.returncode, out.decode()

    def read(self, name):
        return json.loads((self.output / name).read_text())

    def files(self):
        return [path for path in self.root.rglob("*") if path.is_file()]


@pytest.fixture
def job(tmp_path, harness_bin, hub):
    return Job(tmp_path, harness_bin)


@pytest.mark.hub
@pytest.mark.timeout(600)
async def test_two_tasks_run_and_the_token_is_nowhere_but_in_the_request(job):
    async with FakeServer(model="fake-model", api_key=CANARY, answer="The answer is #### 18\n\nB") as server:
        code, out = await job.run(server.url, GSM8K, MMLU)
    assert code == 0, out
    assert validate("summary", job.read("summary.json")) == {"gsm8k": "ok", "mmlu_logits": "ok"}
    for task in ("gsm8k", "mmlu_logits"):
        assert list((job.output / task).rglob("results_*.json")), out
        assert (job.output / task / "harness.log").stat().st_size > 1000
    packages = validate("run_manifest", job.read("run_manifest.json"))["harness"]["packages"]
    assert {"nvidia-lm-eval", "nemo-evaluator"} <= packages.keys()
    assert validate("direct_progress", job.read("progress.json"))["state"] == "finished"
    assert server.count >= 6 and CANARY not in out
    assert not [path for path in job.files() if CANARY.encode() in path.read_bytes()]


@pytest.mark.hub
@pytest.mark.timeout(600)
async def test_a_stopped_task_goes_on_from_the_answers_it_has(job):
    many = task_document("gsm8k", {**PARAMS, "limit_samples": 40}, ADAPTER)
    async with FakeServer(Behaviour(delay=0.3), model="fake-model", answer="#### 18") as server:
        process = await job.start(server.url, many)
        reading = asyncio.create_task(process.communicate())
        await asyncio.to_thread(wait_for, lambda: server.count > 8, 300)
        process.send_signal(signal.SIGUSR1)
        out, _ = await reading
        assert process.returncode == 75, out.decode()
        assert job.read("summary.json") == {}
        progress = job.read("progress.json")
        assert (progress["state"], progress["task"], progress["samples_total"]) == ("stopped", "gsm8k", 40)
        assert 0 < progress["samples_done"] < 40
        answered = server.count
        code, text = await job.run(server.url, many, resume=True)
    assert code == 0, text
    assert job.read("summary.json") == {"gsm8k": "ok"}
    in_flight = PARAMS["parallelism"]
    assert server.count <= 40 + 2 * PREFLIGHT_REQUESTS + in_flight, f"{answered} before, {server.count} in all"


@pytest.mark.hub
@pytest.mark.timeout(600)
async def test_a_secret_url_reaches_the_endpoint_and_no_file(job):
    async with FakeServer(model="fake-model", answer="#### 18") as server:
        job.environ["EVAL_ENDPOINT_URL"] = f"{server.url}/completions?code=not-a-real-secret"
        variable = {"endpoint_url": None, "endpoint_url_variable": "EVAL_ENDPOINT_URL"}
        code, out = await job.run(server.url, GSM8K, model=variable)
    assert code == 0, out
    assert all(request.path.endswith("?code=not-a-real-secret") for request in server.log)
    assert not [path for path in job.files() if b"not-a-real-secret" in path.read_bytes()]


@pytest.mark.model
async def test_a_real_server_that_ignores_echo_is_found_out_and_serves_the_rest(tmp_path, model_url):
    world = World(tmp_path)
    model = {"endpoint_url": f"{model_url}/completions", "id": served_model(model_url), "api_key_name": None}
    asked = {"preflight": True, "model": model, "secrets": []}
    found = await asyncio.to_thread(lambda: world.run("hellaswag", **asked))
    assert found.code == 2 and "hellaswag would score chance" in found.err
    fine = await asyncio.to_thread(lambda: world.run("gsm8k", behaviour={"gsm8k": [{"request": "2 + 2 ="}]}, **asked))
    assert fine.code == 0 and "answer: " in world.log()


def served_model(url):
    with urllib.request.urlopen(f"{url}/models", timeout=180) as reply:
        return json.load(reply)["data"][0]["id"]
