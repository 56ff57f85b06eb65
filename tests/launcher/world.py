"""What tests of the launcher start from: a user with an endpoint, a folder and nothing else."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nemotron.profiles import LOCAL, NamedProfile
from nemotron.request import CompiledJob, Request
from nemotron.steps.eval.model_eval.step import compile_step

TOKEN = "sk-not-a-real-key"
USER = {
    "EVAL_ENDPOINT_URL": "https://host/v1/completions",
    "EVAL_MODEL_HANDLE": "my-model",
    "EVAL_RESULTS_DIR": "/results",
    "ENDPOINT_TOKEN": TOKEN,
}
PARAMS = "evaluation.nemo_evaluator_config.config.params"
ADAPTER = "evaluation.nemo_evaluator_config.target.api_endpoint.adapter_config"
SLURM = NamedProfile("slurm", "[slurm] of env.toml", {"executor": "slurm"})
DOCKER = NamedProfile("docker", "[docker] of env.toml", {"executor": "docker"})


def compiled(
    *overrides: str,
    suite: str = "direct",
    tasks: Sequence[str] = (),
    profile: NamedProfile = LOCAL,
    folder: Path = Path("/home/me"),
    squash: bool = False,
    **environ: str,
) -> CompiledJob:
    """Variables with an empty value are taken for unset, as everywhere."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return compile_step(Request(suite, profile, folder, now, USER | environ, tuple(tasks), overrides, squash))


def plan(*overrides: str, **choices: Any) -> dict[str, Any]:
    return dict(compiled(*overrides, **choices).job.plan)


def params(*overrides: str, **choices: Any) -> dict[str, Any]:
    """Of the first task."""
    first: dict[str, Any] = plan(*overrides, **choices)["tasks"][0]["params"]
    return first
