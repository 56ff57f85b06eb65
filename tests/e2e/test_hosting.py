"""The untouched nvidia-lm-eval wheel under the published nemo-evaluator and under ours: same scores, same requests.

Parts of the testbed: hub, harness (the published one), hosting (the same wheel beside this project).
"""

import asyncio
import json
import os
import signal
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fakes.openai_server import Behaviour, FakeServer, When

KEY = "sk-not-a-real-key"
SAMPLES = 12
TOKENIZER = {
    "config.params.extra.tokenizer": "example/small-bpe",
    "config.params.extra.tokenizer_backend": "huggingface",
    "config.params.limit_samples": SAMPLES,
}


@dataclass
class Ran:
    results: dict[str, Any]
    requests: Counter[str]
    """By what was asked, parameters included."""

    def scores(self) -> dict[str, Any]:
        return self.results["results"]


@dataclass
class Commands:
    """One nemo-evaluator, in its own environment."""

    bin: Path
    hub: str
    home: Path

    def start(self, task: str, url: str, out: Path, **settings: Any) -> subprocess.Popen[str]:
        kind = "chat" if url.endswith("/chat/completions") else "completions"
        flags = {"eval_type": task, "model_id": "m", "model_type": kind, "model_url": url, "output_dir": str(out)}
        overrides = ",".join(f"{key}={value}" for key, value in (TOKENIZER | settings).items())
        flags |= {"api_key_name": "E2E_TOKEN", "overrides": overrides}
        command = [str(self.bin / "nemo-evaluator"), "run_eval"]
        command += [part for flag, value in flags.items() for part in (f"--{flag}", value)]
        return subprocess.Popen(
            command, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def environment(self) -> dict[str, str]:
        """No key but the one that is named; the commands of the environment are found as after its activation."""
        hub = {"HF_ENDPOINT": self.hub, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(self.home / "hf")}
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        return {"PATH": path, "HOME": str(self.home), "E2E_TOKEN": KEY, "NEMO_EVALUATOR_TELEMETRY_LEVEL": "0", **hub}

    async def run(self, server: FakeServer, task: str, path: str, out: Path, **settings: Any) -> Ran:
        server.reset_log()
        process = self.start(task, f"{server.url}{path}", out, **settings)
        output, _ = await asyncio.to_thread(process.communicate, timeout=300)
        assert process.returncode == 0, output[-4000:]
        assert KEY not in output
        asked = Counter(json.dumps(body, sort_keys=True) for body in server.bodies)
        return Ran(yaml.safe_load((out / "results.yml").read_text()), asked)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both share what they read from the hub."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def published(harness_bin: Path, hub: str, home: Path) -> Commands:
    return Commands(harness_bin, hub, home)


@pytest.fixture
def ours(hosting_bin: Path, hub: str, home: Path) -> Commands:
    return Commands(hosting_bin, hub, home)


GSM8K_KEY = {
    "Janet’s ducks lay 16 eggs": "#### 18",
    "A robe takes 2 bolts of blue fiber": "#### 3",
    "Josh decides to try flipping a house": "#### 70000",
    "James decides to run 3 sprints": "#### 540",
    "Wendi feeds each of her chickens": "#### 20",
}


@pytest.mark.hub
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("task", "path", "settings"),
    [
        ("gsm8k", "/completions", {}),
        ("gsm8k_cot_instruct", "/chat/completions", {}),
        ("mmlu", "/completions", {"config.params.task": "mmlu_abstract_algebra"}),
    ],
    ids=["gsm8k", "gsm8k chat", "mmlu by log-probabilities"],
)
async def test_scores_and_requests_equal_the_published_one_s(published, ours, tmp_path, task, path, settings):
    async with FakeServer(mode="key", answer_key=GSM8K_KEY, answer="B", api_key=KEY) as server:
        theirs = await published.run(server, task, path, tmp_path / "published", **settings)
        mine = await ours.run(server, task, path, tmp_path / "ours", **settings)
    assert mine.scores() == theirs.scores()
    assert mine.requests == theirs.requests
    assert theirs.requests.total() >= SAMPLES
    found = [value for value in _values(mine.scores()) if 0 < value < 1]
    assert found, "the key must decide something"


def _values(results: Any) -> list[float]:
    if not isinstance(results, dict):
        return []
    own = [results["value"]] if "value" in results else []
    return own + [value for inner in results.values() for value in _values(inner)]


@pytest.mark.hub
@pytest.mark.timeout(600)
async def test_a_hosted_task_leaves_every_file(ours, tmp_path):
    adapter = "target.api_endpoint.adapter_config"
    settings = {f"{adapter}.use_request_logging": "true", f"{adapter}.max_logged_requests": 3}
    async with FakeServer(mode="key", answer_key=GSM8K_KEY, api_key=KEY) as server:
        await ours.run(server, "gsm8k", "/completions", tmp_path / "out", **settings)
    out = tmp_path / "out"
    for pattern in (
        "results.yml",
        "run_config.yml",
        "eval_factory_metrics.json",
        "m/results_*.json",
        "m/samples_*.jsonl",
    ):
        assert list(out.glob(pattern)), pattern
    assert len((out / "adapter/requests.jsonl").read_text().splitlines()) == 3
    assert json.loads((out / "eval_factory_metrics.json").read_text())["response_stats"]["count"] == SAMPLES
    assert not [path for path in out.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


@pytest.mark.hub
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
async def test_a_killed_task_goes_on_without_asking_again_what_was_answered(ours, tmp_path, number):
    slow = Behaviour(delay=0.5, when=When())
    settings = {"config.params.parallelism": 1}
    async with FakeServer(slow, mode="key", answer_key=GSM8K_KEY, api_key=KEY) as server:
        process = ours.start("gsm8k", f"{server.url}/completions", tmp_path / "out", **settings)
        while server.count < SAMPLES // 2:
            await asyncio.sleep(0.05)
        process.send_signal(number)
        await asyncio.to_thread(process.communicate)
        answered = sum(len(path.read_bytes().splitlines()) for path in tmp_path.glob("out/adapter/cache/*.jsonl"))
        again = await ours.run(server, "gsm8k", "/completions", tmp_path / "out", **settings)
    assert answered >= SAMPLES // 2 - 1
    assert again.requests.total() == SAMPLES - answered
    assert list(_values(again.scores()))
