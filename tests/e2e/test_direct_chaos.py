"""One direct-mode run, struck again and again: the runner, the proxy, the harness and the endpoint, each by the signals
that really come. Whatever was answered is never asked again, finished tasks never run again, files are always whole."""

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from nemo_evaluator.proxy.exchange import Request
from nemo_evaluator.proxy.interceptors.caching import key_of
from tests.fakes.openai_server import Behaviour, FakeServer
from tests.harness.direct.world import build_runner, plan_document, task_document, validate
from tests.harness.frameworks.conftest import TOY

TASKS, QUESTIONS = ("sums", "more_sums", "last_sums"), 150
STRIKES = ("TERM", "KILL", "proxy", "harness", "endpoint")
PATIENCE = 240.0


class Run:
    """The same results folder through all its lives."""

    def __init__(self, folder: Path, server: FakeServer) -> None:
        self.folder, self.output, self.server = folder, folder / "results", server
        self.runner = build_runner(folder / "runner.pyz")
        self.process: subprocess.Popen[bytes] | None = None
        self.codes: list[int] = []
        write_harness(folder / "site")

    def start(self) -> None:
        params = {"limit_samples": QUESTIONS, "max_retries": 9, "request_timeout": 30}
        tasks = [task_document(name, params, {"use_caching": True}) for name in TASKS]
        url = f"{self.server.url}/completions"
        document = plan_document(self.output, tasks, model={"endpoint_url": url}, resume=True)
        (self.folder / "plan.json").write_text(json.dumps(validate("plan", document)))
        environ = {"PYTHONPATH": str(self.folder / "site"), "TOY_HARNESS": str(TOY / "toy_harness.py")}
        environ |= {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(self.folder)}
        with (self.folder / "runner.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(self.runner), str(self.folder / "plan.json")],
                env=environ | {"ENDPOINT_TOKEN": "sk-not-a-real-key"},
                stdout=log,
                stderr=log,
            )

    async def asks(self, more: int) -> bool:
        """Once this runner has begun and so many further requests have come; false if it has ended before."""
        if not await self._until(self._has_begun):
            return False
        enough = self.server.count + more
        return await self._until(lambda: self.server.count >= enough)

    def _has_begun(self) -> bool:
        """It holds the folder, and nobody whom its predecessor left behind asks on."""
        with contextlib.suppress(OSError, ValueError):
            return json.loads((self.output / ".nemotron-eval.lock").read_text())["pid"] == self.process.pid
        return False

    async def ends(self) -> None:
        await self._until(lambda: False)

    async def _until(self, is_so: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                self.codes.append(self.process.returncode)
                self.process = None
                return False
            if is_so():
                return True
            await asyncio.sleep(0.01)
        raise AssertionError((self.folder / "runner.log").read_text())

    async def strike(self, what: str) -> None:
        if what in ("TERM", "KILL"):
            self.process.send_signal(signal.Signals[f"SIG{what}"])
            await self.ends()
        elif what == "endpoint":
            await self.server.stop()
            await asyncio.sleep(0.3)
            await self.server.start(self.server.port)
        else:
            proxies = children(self.process.pid)
            struck = proxies if what == "proxy" else [pid for proxy in proxies for pid in children(proxy)]
            for pid in struck:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def kept(self) -> set[bytes]:
        """Keys of the answers on disk; a torn last line is none."""
        lines = [
            line for path in self.output.glob("*/adapter/cache/*.jsonl") for line in path.read_bytes().split(b"\n")
        ]
        return {bytes.fromhex(line[8:40].decode()) for line in lines if line.endswith(b"}")}

    def finished(self) -> set[str]:
        """Also checks that what is there is whole."""
        if not (self.output / "summary.json").exists():
            return set()
        summary = validate("summary", json.loads((self.output / "summary.json").read_text()))
        validate("run_manifest", json.loads((self.output / "run_manifest.json").read_text()))
        return {name for name, state in summary.items() if state == "ok"}


@dataclass
class Watch:
    """Compares each life with what the ones before it left."""

    run: Run
    kept: set[bytes] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)
    seen: int = 0

    def look(self) -> set[str]:
        """Between two lives; gives the tasks that are finished."""
        bodies = self.run.server.bodies
        asked = {key_of(Request("POST", "/v1/completions", b"", body)) for body in bodies[self.seen :]}
        assert not asked & self.kept, "asked again though its answer was kept"
        assert self.finished <= self.run.finished(), "a finished task is finished no more"
        self.seen, self.kept, self.finished = len(bodies), self.run.kept(), self.run.finished()
        return self.finished


def write_harness(site: Path) -> None:
    """The toy's one task under three names."""
    package = site / "core_evals/toy"
    package.mkdir(parents=True)
    definition = yaml.safe_load((TOY / "core_evals/toy/framework.yml").read_text())
    sums = definition["evaluations"][0]["defaults"]["config"]
    definition["evaluations"] = [
        {"name": name, "defaults": {"config": {**sums, "type": name, "params": {"task": name, "temperature": 0.25}}}}
        for name in TASKS
    ]
    (package / "framework.yml").write_text(yaml.safe_dump(definition))
    (package / "output.py").write_text((TOY / "core_evals/toy/output.py").read_text())


def children(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(stat.parent.name))
    return found


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    async with FakeServer(Behaviour(delay=0.01), answer="42", api_key="sk-not-a-real-key") as server:
        run = Run(tmp_path, server)
        yield run
        if run.process is not None:
            run.process.kill()
            run.process.wait()


@pytest.mark.chaos
@pytest.mark.timeout(900)
async def test_struck_anywhere_it_asks_nothing_twice_and_loses_nothing(run):
    chance = random.Random(11)
    strikes = [*STRIKES, *STRIKES]
    chance.shuffle(strikes)
    watch = Watch(run)
    for what in strikes:
        while run.process is None or not await run.asks(chance.randint(3, 25)):
            watch.look()
            run.start()
        await run.strike(what)
    assert run.server.count < len(TASKS) * QUESTIONS, "it was over before it was struck often enough"
    while watch.look() != set(TASKS):
        if run.process is None:
            run.start()
        await run.ends()
    assert len(run.codes) >= 5 and {75, -9, 0} <= set(run.codes)
    assert run.server.count <= len(TASKS) * QUESTIONS + len(strikes)  # of each strike at most one in flight was lost
    for task in TASKS:
        scores = yaml.safe_load((run.output / task / "results.yml").read_text())["results"]["tasks"]
        assert scores[next(iter(scores))]["metrics"]["accuracy"]["scores"]["accuracy"]["value"] == 1.0
