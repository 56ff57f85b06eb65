"""`nemotron` as a user runs it: a process, with an environment that holds what is given and nothing else."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.launcher.world import USER

ROOT = Path(__file__).parents[2]
HARNESS = ROOT / "tests/fakes/fake_harness.py"


@dataclass
class User:
    """Has a folder, a home for nemotron's records, and an environment of Python with a (fake) harness in it."""

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)

    @classmethod
    def at(cls, folder: Path) -> "User":
        commands = folder / "harness/bin"
        commands.mkdir(parents=True)
        (commands / "python").symlink_to(sys.executable)
        (commands / "nemo-evaluator").write_text(f'#!/bin/sh\nexec {sys.executable} {HARNESS} "$@"\n')
        (commands / "nemo-evaluator").chmod(0o755)
        (folder / "env.toml").write_text(
            f'[local_eval_direct]\nexecutor = "local"\npython = "{commands / "python"}"\n'
            "env_vars.FAKE_HARNESS = \"${oc.env:FAKE_HARNESS,''}\"\n"
            '[slurm_eval_direct]\nexecutor = "slurm"\npartition = "cpu"\n'
            '[lepton_eval_direct]\nexecutor = "lepton"\nresource_shape = "cpu.large"\n'
            'secret_vars.ENDPOINT_TOKEN = "t"\n'
        )
        environ = USER | {"PATH": os.environ["PATH"], "HOME": str(folder), "NEMOTRON_HOME": str(folder / "records")}
        return cls(folder, environ | {"EVAL_RESULTS_DIR": str(folder / "results")})

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def summary(self) -> dict[str, str]:
        summary: dict[str, str] = json.loads((self.results / "summary.json").read_text())
        return summary

    def __call__(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            cwd=self.folder,
            env=self.environ | environ,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def start(self, *words: str, **environ: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*words),
            cwd=self.folder,
            env=self.environ | environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def evaluate(self, *words: str, **environ: Any) -> subprocess.CompletedProcess[str]:
        """Without a look at the endpoint: the harness is fake, and asks nobody."""
        return self("steps", "run", "eval/model_eval", "preflight=false", *words, **environ)

    @staticmethod
    def command(*words: str) -> list[str]:
        return [sys.executable, "-m", "nemotron.cli.main", *words]
