"""Slurm commands of guide and README as they are printed: profile, verification run, loop over checkpoints, results.

Parts of the testbed: hub, slurm, podman, registry, image.
"""

import json
from pathlib import Path

import pytest

from tests.conftest import _testbed
from tests.e2e.test_direct_guide import LOOP, PREPARE, TASKS, TOKEN, Guide, addressed, checkpoints, guide
from tests.e2e.test_readme import blocks

__all__ = ["guide"]

VERIFY = """
export EVAL_ENDPOINT_URL="https://run-a.example.com/v1/completions"
export EVAL_MODEL_HANDLE="run-a"
export EVAL_RESULTS_DIR="/mnt/shared/eval/verification"
export EVAL_API_KEY_NAME=ENDPOINT_TOKEN
export ENDPOINT_TOKEN="<endpoint-token>"
export EVAL_TOKENIZER="<hf-repo-id-or-path>"
EVAL_LIMIT_SAMPLES=5 uv run nemotron steps run eval/model_eval \\
  -c direct --batch slurm_eval_direct \\
  -t hellaswag
"""
OF_THE_SITE = {
    'account = "<account>"': 'account = "eval"',
    'partition = "<partition>"': 'partition = "cpu"',
    'container_runtime = "pyxis"': 'container_runtime = "podman"',
    'mounts = ["/<shared storage>"]': "mounts = []",
}
"""What whoever reads the guide fills in."""


@pytest.mark.hub
@pytest.mark.timeout(900)
async def test_the_commands_for_slurm_run_as_printed(guide: Guide, slurm: dict[str, str]):
    image = _testbed("NEL_TEST_IMAGE", "image")
    await guide.type(addressed(PREPARE.replace("local", "slurm"), "slurm_eval_direct", {}, guide.folder))
    fill_in(guide.folder / "env.toml", guide)
    guide.environ["SLURM_CONF"] = slurm["SLURM_CONF"]
    guide.environ["EVAL_HARNESS_IMAGE"] = (await guide.type(f"nemotron images digest {image}")).strip()
    async with checkpoints() as servers:
        verify = VERIFY.replace("https://run-a.example.com/v1", servers["run-a"].url)
        said = await guide.type(addressed(verify, "slurm_eval_direct", {}, guide.folder))
        said += await guide.type(addressed(LOOP, "slurm_eval_direct", servers, guide.folder))
        jobs = [line.split()[2] for line in said.splitlines() if line.startswith("Submitted job ")]
        assert len(jobs) == 3, said
        said += await guide.type(f"nemotron jobs wait {' '.join(jobs)}")
    assert guide.read("verification/summary.json") == {"hellaswag": "ok"}, said
    for checkpoint, server in servers.items():
        assert guide.read(f"{checkpoint}/summary.json") == dict.fromkeys(TASKS, "ok"), said
        manifest = guide.read(f"{checkpoint}/run_manifest.json")
        assert (manifest["model"]["id"], manifest["harness"]["image_pinned_by_digest"]) == (checkpoint, True)
        assert {body["model"] for body in server.bodies} == {checkpoint}
    inspected = await guide.type(f'EVAL_RESULTS_DIR={guide.folder}/eval/run-a\ncat "$EVAL_RESULTS_DIR/summary.json"')
    assert json.loads(inspected) == dict.fromkeys(TASKS, "ok")
    assert TOKEN not in said
    assert not [p for p in guide.folder.rglob("*") if p.is_file() and TOKEN.encode() in p.read_bytes()]


@pytest.mark.hub
@pytest.mark.timeout(900)
async def test_the_readmes_commands_for_slurm_run(guide: Guide, slurm: dict[str, str]):
    """As printed, but for what every reader replaces, and with a short suite."""
    (section,) = (block for block in blocks("sh") if "-c slurm" in block)
    image = _testbed("NEL_TEST_IMAGE", "image")
    guide.environ |= {"SLURM_CONF": slurm["SLURM_CONF"], "EVAL_HARNESS_IMAGE": image}
    first, _, rest = section.partition("\n")
    await guide.type(first)
    fill_in(guide.folder / "env.toml", guide)
    async with checkpoints() as servers:
        mine = {"http://model.example.com/v1": servers["run-a"].url, "my-org/my-model": "run-a", "...": TOKEN}
        for printed, own in (mine | {"/shared": str(guide.folder), "base_en": "quickstart"}).items():
            assert printed in rest
            rest = rest.replace(printed, own)
        said = await guide.type(rest)
    summary = json.loads((guide.folder / "results/summary.json").read_text())
    assert summary == {"tiny_arithmetic": "ok", "tiny_choice": "ok"}, said
    assert TOKEN not in said


def fill_in(profile: Path, guide: Guide) -> None:
    text = profile.read_text()
    for printed, real in OF_THE_SITE.items():
        assert printed in text, text
        text = text.replace(printed, real)
    own = [f'remote_job_dir = "{guide.folder}/jobs"']
    own += [f'env_vars.{name} = "{guide.environ[name]}"' for name in ("HF_ENDPOINT", "HF_HUB_DISABLE_XET")]
    head = "[slurm_eval_direct]\n"
    profile.write_text(text.replace(head, head + "\n".join(own) + "\n"))
