"""`nel` as a user runs it: a process, in an empty folder, against the fake server in a process of its own."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@dataclass
class ServerProcess:
    """The fake server, told what to do and asked what it saw over HTTP."""

    root: str

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    def control(self, **settings: Any) -> None:
        self._call("/__control", settings)

    def log(self) -> list[dict[str, Any]]:
        return self._call("/__log")["log"]

    def _call(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.root + path, data)) as reply:
            return json.load(reply)


@pytest.fixture(scope="session")
def server_process() -> Iterator[ServerProcess]:
    command = [sys.executable, "-m", "tests.fakes.openai_server"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        yield ServerProcess(process.stdout.readline().split()[1])
        process.terminate()


DEFAULTS = {
    "behaviours": [],
    "answer": "Answer: 42",
    "mode": "text",
    "size": 0,
    "answer_key": {},
    "model": None,
    "api_key": None,
    "refuses": [],
    "bucket": None,
    "loading_seconds": 0.0,
    "max_model_len": None,
}


@pytest.fixture
def server(server_process: ServerProcess) -> ServerProcess:
    server_process.control(**DEFAULTS, reset_log=True)
    return server_process


@dataclass
class Nel:
    """Runs `nel` and keeps what it printed."""

    folder: Path
    environ: dict[str, str]

    def __call__(self, *arguments: str, code: int = 0, **environ: str) -> subprocess.CompletedProcess[str]:
        done = self.start(*arguments, **environ)
        out, err = done.communicate(timeout=240)
        assert done.returncode == code, f"exit {done.returncode}, not {code}\n{out}\n{err}"
        return subprocess.CompletedProcess(arguments, done.returncode, out, err)

    def start(self, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "nemo_evaluator.cli.main", *arguments],
            cwd=self.folder,
            env=self.environ | environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def bundle(self, folder: str = "eval_results/tiny_arithmetic") -> dict[str, Any]:
        (path,) = (self.folder / folder).glob("eval-*.json")
        return json.loads(path.read_text())


@pytest.fixture
def nel(tmp_path: Path) -> Nel:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "COVERAGE_PROCESS_START") if name in os.environ}
    environ = kept | {"HOME": str(tmp_path / "home"), "PYTHONWARNINGS": "error"}
    return Nel(tmp_path, environ)


@pytest.fixture
def quick(server: ServerProcess) -> tuple[str, ...]:
    """The flags of a run that takes a moment."""
    return ("-b", "tiny_arithmetic", "--model-url", server.url, "--model-id", "fake-model")
