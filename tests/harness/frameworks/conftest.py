"""A harness of somebody else's, as small as can be, in toy/: a framework.yml, a command, an output parser."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fakes.openai_server import FakeServer

KEY = "sk-not-a-real-key"

TOY = Path(__file__).parent / "toy"


@dataclass
class Evaluator:
    """`nemo-evaluator` as a process, with the toy harness installed."""

    folder: Path
    environ: dict[str, str]

    def start(self, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "nemo_evaluator.cli.nemo_evaluator_main", *arguments],
            cwd=self.folder,
            env=self.environ | environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str, code: int = 0, **environ: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, **environ)
        out, err = process.communicate(timeout=300)
        assert process.returncode == code, f"exit {process.returncode}, not {code}\n{out}\n{err}"
        return subprocess.CompletedProcess(arguments, code, out, err)

    def task(self, name: str = "sums", url: str = "http://127.0.0.1:9/v1/completions") -> tuple[str, ...]:
        flags = {"eval_type": name, "model_id": "m", "model_type": "completions", "model_url": url, "output_dir": "out"}
        return ("run_eval", *(part for flag, value in flags.items() for part in (f"--{flag}", value)))

    def yaml(self, name: str) -> Any:
        return yaml.safe_load((self.folder / "out" / name).read_text())

    def json(self, name: str) -> Any:
        return json.loads((self.folder / "out" / name).read_text())


@pytest.fixture
def evaluator(tmp_path: Path) -> Evaluator:
    harness = {"PYTHONPATH": str(TOY), "TOY_HARNESS": str(TOY / "toy_harness.py")}
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), **harness}
    return Evaluator(tmp_path, environ)


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer(answer="42") as server:
        yield server
