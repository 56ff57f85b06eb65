"""The guide's loop over checkpoints, as it is printed: profiles made by env/env_toml, the real harness, base_en.

On this machine with the hosted wheel, and in the local engine with our own image by its digest. Parts of the testbed:
hub, hosting; podman, registry, image.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import _testbed
from tests.fakes.openai_server import FakeServer

TOKEN = "sk-not-a-real-key-of-the-guide"
TASKS = ["adlr_arc_challenge_llama_25_shot", "hellaswag", "gsm8k"]
PREPARE = """
profile_tmp_dir="$(mktemp -d)"
uv run nemotron steps run env/env_toml -c local \\
    output_path="$profile_tmp_dir/env.local.toml"
cp "$profile_tmp_dir/env.local.toml" env.toml
grep '^\\[PROFILE\\]' env.toml
"""
LOOP = """
export EVAL_ENDPOINT_TYPE=completions
export EVAL_API_KEY_NAME=ENDPOINT_TOKEN
export ENDPOINT_TOKEN="<endpoint-token>"
# Required here because run-a and run-b are served-model aliases.
export EVAL_TOKENIZER="<hf-repo-id-or-path>"

for CKPT in run-a run-b; do
  export EVAL_MODEL_HANDLE="$CKPT"
  export EVAL_ENDPOINT_URL="https://$CKPT.example.com/v1/completions"
  export EVAL_RESULTS_DIR="/mnt/shared/eval/$CKPT"
  uv run nemotron steps run eval/model_eval -c base_en --batch slurm_eval_direct
done
"""


@dataclass
class Guide:
    """A user with the commands of an environment, who types what is printed."""

    folder: Path
    environ: dict[str, str]

    async def type(self, script: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *("sh", "-eu", "-c", script),
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        out, _ = await process.communicate()
        assert process.returncode == 0, out.decode()
        return out.decode()

    def read(self, name: str) -> dict:
        return json.loads((self.folder / "eval" / name).read_text())


@pytest.fixture
def guide(tmp_path: Path, hub: str) -> Guide:
    """`uv run` is all that stands between the guide and the commands, so a word stands for it."""
    commands = tmp_path / "commands"
    commands.mkdir()
    (commands / "uv").write_text('#!/bin/sh\nshift\nexec "$@"\n')
    (commands / "uv").chmod(0o755)
    path = os.pathsep.join([str(commands), str(Path(sys.executable).parent), "/usr/bin", "/bin"])
    hugging_face = {"HF_ENDPOINT": hub, "HF_HUB_DISABLE_XET": "1"}
    environ = {"PATH": path, "HOME": str(tmp_path), "EVAL_LIMIT_SAMPLES": "3", **hugging_face}
    return Guide(tmp_path, environ)


@asynccontextmanager
async def checkpoints() -> AsyncIterator[dict[str, FakeServer]]:
    async with (
        FakeServer(model="run-a", answer="#### 18", api_key=TOKEN) as a,
        FakeServer(model="run-b", answer="#### 3", api_key=TOKEN) as b,
    ):
        yield {"run-a": a, "run-b": b}


def site_values(guide: Guide, **values: str) -> None:
    """What a site adds to its profiles once they are made."""
    head = "[docker_eval_direct]\n"
    text = (guide.folder / "env.toml").read_text()
    assert head in text
    added = "".join(f'env_vars.{name} = "{value}"\n' for name, value in values.items())
    (guide.folder / "env.toml").write_text(text.replace(head, head + added))


def addressed(script: str, profile: str, servers: dict[str, FakeServer], folder: Path) -> str:
    """The placeholders of the guide, filled in."""
    ports = " ".join(f"{name}) port={server.url.rpartition(':')[2]} ;;" for name, server in servers.items())
    script = script.replace(
        '  export EVAL_ENDPOINT_URL="https://$CKPT.example.com',
        f'  case $CKPT in {ports} esac\n  export EVAL_ENDPOINT_URL="http://127.0.0.1:${{port%/v1}}',
    )
    for printed, real in {
        "<endpoint-token>": TOKEN,
        "<hf-repo-id-or-path>": "example/small-bpe",
        "/mnt/shared/eval": str(folder / "eval"),
        "slurm_eval_direct": profile,
        "PROFILE": profile,
    }.items():
        script = script.replace(printed, real)
    return script


@pytest.mark.hub
@pytest.mark.timeout(900)
@pytest.mark.parametrize("profile", ["local_eval_direct", "docker_eval_direct"])
async def test_the_loop_over_checkpoints_runs_as_printed(guide, request, profile):
    await guide.type(addressed(PREPARE, profile, {}, guide.folder))
    if profile == "local_eval_direct":
        guide.environ["PATH"] = f"{request.getfixturevalue('hosting_bin')}{os.pathsep}{guide.environ['PATH']}"
    else:
        guide.environ["DOCKER_HOST"] = _testbed("NEL_TEST_ENGINE", "podman")
        image = _testbed("NEL_TEST_IMAGE", "image")
        guide.environ["EVAL_HARNESS_IMAGE"] = (await guide.type(f"nemotron images digest {image}")).strip()
        site_values(guide, HF_ENDPOINT=guide.environ["HF_ENDPOINT"], HF_HUB_DISABLE_XET="1")
    async with checkpoints() as servers:
        said = await guide.type(addressed(LOOP, profile, servers, guide.folder))
        jobs = [line.split()[2] for line in said.splitlines() if line.startswith("Submitted job ")]
        assert len(jobs) == 2, said
        waited = [await guide.type(f"nemotron jobs wait {job}") for job in jobs]
        status = await guide.type("nemotron jobs list")
    for checkpoint, server in servers.items():
        assert guide.read(f"{checkpoint}/summary.json") == dict.fromkeys(TASKS, "ok"), waited
        manifest = guide.read(f"{checkpoint}/run_manifest.json")
        assert manifest["model"]["id"] == checkpoint
        assert manifest["harness"]["image"] == guide.environ.get("EVAL_HARNESS_IMAGE")
        assert manifest["harness"]["image_pinned_by_digest"] is (profile == "docker_eval_direct")
        assert manifest["harness"]["packages"]["nvidia-lm-eval"]
        assert {body["model"] for body in server.bodies} == {checkpoint}
        assert list((guide.folder / "eval" / checkpoint / "gsm8k").rglob("samples_gsm8k_*.jsonl"))
    assert TOKEN not in said + status + "".join(waited)
    assert not [p for p in guide.folder.rglob("*") if p.is_file() and TOKEN.encode() in p.read_bytes()]
    compared = json.loads(await guide.type("nel compare eval/run-a eval/run-b --json"))
    assert {found["task"] for found in compared["comparisons"]} == set(TASKS)
