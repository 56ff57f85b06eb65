"""The README is always true: what it prints runs."""

import re
import shlex
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("path", re.findall(r"\]\(([^)]+)\)", README))
def test_links_lead_somewhere(path):
    assert (ROOT / path).exists()


def test_files_and_folders_named_in_the_map_exist():
    for name in re.findall(r"^(?:  )?((?:[a-z_]+/)+)", blocks("")[-1], re.MULTILINE):
        assert (ROOT / name).exists() or (ROOT / "harness/nemo_evaluator" / name).exists(), name
