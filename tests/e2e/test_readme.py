"""The README is always true: what it prints runs."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from nemo_evaluator.config.load import load_config
from nemo_evaluator.environments.registry import resolve
from tests.fakes.openai_server import FakeServer

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_first_two_commands_are_the_newcomers():
    commands = [line.split()[0] for line in blocks("sh")[0].splitlines()]
    assert commands == ["scripts/quickstart", "scripts/test"]
    assert all((ROOT / command).stat().st_mode & 0o100 for command in commands)


async def test_the_python_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = blocks("python")
    scope: dict = {"__name__": "readme"}
    exec(compile(example, "README.md", "exec"), scope)
    async with FakeServer(mode="key", answer_key={"France": "Paris", "Japan": "Kyoto"}) as server:
        score = await scope["main"](server.url)
    assert score["value"] == 0.5
    assert list((tmp_path / "results/capitals").glob("eval-*.json"))
    assert await resolve("capitals").dataset_size() == 2


def test_the_commands_for_an_endpoint_of_ones_own_run(nel, server, hub):
    """As printed, but for the address and the number of problems."""
    lines = [line.partition("#")[0] for line in blocks("sh")[1].splitlines() if line.startswith("nel ")]
    for line in lines:
        _, *arguments = shlex.split(line.replace("http://localhost:8000/v1", server.url))
        nel(*arguments, "--max-problems", "3", HF_ENDPOINT=hub, HF_HUB_DISABLE_XET="1")
    assert len(lines) == 3 and len(server.log()) == 3
    assert nel.bundle("results/gsm8k")["status"] == "completed"


def test_the_commands_of_direct_mode_run(tmp_path, server):
    """As printed, but for the address; EVAL_LIMIT_SAMPLES keeps it short."""
    script = blocks("sh")[2].replace("http://localhost:8000", server.root).replace("my-model", "fake-model")
    server.control(model="fake-model")
    environ = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path), "EVAL_LIMIT_SAMPLES": "3"}
    done = subprocess.run(
        ["sh", "-eu", "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = tmp_path / "results/fake-model"
    assert json.loads((results / "summary.json").read_text()) == {"tiny_arithmetic": "ok", "tiny_choice": "ok"}
    assert (results / "summary.dry-run.json").exists()
    assert re.search(r"^tiny_choice +pass@1 +0\.\d{4}", done.stdout, re.MULTILINE)


def test_the_yaml_example_is_a_config(tmp_path):
    (example,) = blocks("yaml")
    (tmp_path / "suite.yaml").write_text(example)
    config = load_config(tmp_path / "suite.yaml", environ={"MODEL_URL": "http://localhost:8000/v1"}).config
    assert [benchmark.name for benchmark in config.benchmarks] == ["gsm8k", "mmlu"]


@pytest.mark.parametrize("path", re.findall(r"\]\(([^)]+)\)", README))
def test_links_lead_somewhere(path):
    assert (ROOT / path).exists()


def test_files_and_folders_named_in_the_map_exist():
    for name in re.findall(r"^(?:  )?((?:[a-z_]+/)+)", blocks("")[-1], re.MULTILINE):
        assert (ROOT / name).exists() or (ROOT / "harness/nemo_evaluator" / name).exists(), name
