"""A user of the testbed's cluster: `nemotron` as a process, a profile, an endpoint, and eyes of one's own on Slurm."""

import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.nel import ServerProcess

Found = TypeVar("Found")
PATIENCE = 240
"""Seconds until a test gives up on something that takes a few here: two slow cores do everything at once."""
CANARY = "sk-not-a-real-key-canary-000000"


def wait_until(look: Callable[[], Found], what: str, patience: float = PATIENCE) -> Found:
    """What the look saw once it is truthy."""
    deadline = time.monotonic() + patience
    while not (seen := look()):
        assert time.monotonic() < deadline, f"{what}: not within {patience} s"
        time.sleep(0.3)
    return seen


@dataclass(frozen=True, slots=True)
class Slurm:
    """The cluster as it sees itself, without nemotron in between."""

    environ: dict[str, str]

    def __call__(self, *command: str) -> str:
        done = subprocess.run(command, env=self.environ, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def job(self, job_id: str) -> dict[str, str]:
        """What the controller knows of a job, in its own words."""
        return dict(re.findall(r"(\w+)=(\S*)", self("scontrol", "show", "job", "-o", job_id)))

    def is_over(self, job_id: str) -> bool:
        return self.job(job_id)["JobState"] not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING")

    def urgent(self, node: str) -> str:
        """Takes a node for a moment from whoever has it, in a partition that may."""
        script = "#!/bin/sh\nsleep 1\n"
        options = ["--parsable", "-p", "urgent", "-w", node, "-c", "1", "--exclusive", "-o", "/dev/null"]
        done = subprocess.run(
            ["sbatch", *options], input=script, env=self.environ, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Submitted:
    id: str
    """nemotron's."""
    slurm_id: str
    output: str


@dataclass
class ClusterUser:
    """Everything they type leaves its words in `said`."""

    folder: Path
    server: ServerProcess
    environ: dict[str, str]
    profile: dict[str, Any]
    said: list[str] = field(default_factory=list)

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def job_folders(self) -> Path:
        return Path(self.profile["remote_job_dir"])

    def __call__(self, *words: str, code: int | None = 0, **environ: str) -> str:
        """Both streams of a command, which must end with that code (None: with any)."""
        self.write_profile()
        done = subprocess.run(
            [sys.executable, "-m", "nemotron.cli.main", *words],
            cwd=self.folder,
            env=self.environ | environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        output = done.stdout + done.stderr
        self.said.append(output)
        assert code in (None, done.returncode), f"{words}: exit {done.returncode}\n{output}"
        return done.stdout if code == 0 else output

    def submit(self, *words: str, suite: str = "quickstart", **environ: str) -> Submitted:
        run = ("steps", "run", "eval/model_eval", "-c", suite, "--batch", "slurm_eval_direct")
        output = self(*run, *words, **environ)
        match = re.search(r"^Submitted job (\S+) \(\w+ (\d+)", output, re.MULTILINE)
        assert match, output
        return Submitted(match[1], match[2], output)

    def status(self, job: Submitted) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(self("jobs", "status", job.id, "--json"))
        return shown

    def wait(self, job: Submitted, code: int | None = 0) -> str:
        return self("jobs", "wait", job.id, "--timeout", str(PATIENCE - 20), code=code)

    def read(self, name: str) -> Any:
        return json.loads((self.results / name).read_text())

    def write_profile(self) -> None:
        lines = [f"{key} = {json.dumps(value)}" for key, value in self.profile.items() if not isinstance(value, dict)]
        for table, values in self.profile.items():
            if isinstance(values, dict):
                lines += [f"{table}.{key} = {json.dumps(value)}" for key, value in values.items()]
        (self.folder / "env.toml").write_text("\n".join(["[slurm_eval_direct]", *lines, ""]))

    def asked(self) -> Counter[str]:
        """How often the endpoint was asked each question; looks before the run begins are not among them."""
        return Counter(prompt for prompt in map(_prompt, self.server.log()) if "Question:" in prompt)


def _prompt(entry: dict[str, Any]) -> str:
    body = entry["body"]
    return str(body.get("prompt") or "".join(str(message["content"]) for message in body.get("messages", [])))


def answered(folder: Path) -> Counter[tuple[int, int]]:
    """How often each sample of a task has an answer in its journal."""
    (journal,) = folder.rglob("inference_log.jsonl")
    rows = [json.loads(line) for line in journal.read_bytes().splitlines()]
    return Counter((row["problem_idx"], row["repeat"]) for row in rows if row.get("state") == "answered")


def files_with(text: str, folders: Iterable[Path]) -> list[Path]:
    """Files below the folders that hold the text; what vanishes meanwhile holds nothing."""
    found = []
    for path in (path for folder in folders for path in folder.rglob("*")):
        try:
            if path.is_file() and not path.is_symlink() and text.encode() in path.read_bytes():
                found.append(path)
        except OSError:
            continue
    return found
