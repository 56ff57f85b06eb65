"""Jobs for Slurm whose scripts and command lines are held in tests/golden/slurm/: `python -m tests.golden.slurm_jobs`
writes them anew, to be read as a diff before they are committed."""

import json
from pathlib import Path

from nemotron.executors.sbatch import directives, script
from nemotron.images.reference import Reference
from nemotron.job import Mount
from nemotron.profiles import SlurmProfile
from nemotron.runtimes import RUNTIMES, Commands, Container, commands

GOLDEN = Path(__file__).parent / "slurm"
FOLDER = "/shared/me/.nemotron/jobs/eval-base-en-llama-3-8b-0a1b2c3d"
NAME = FOLDER.rpartition("/")[2]
DIGEST = "sha256:" + "8d" * 32
PROFILES = {
    "nothing": SlurmProfile(account="", partition=""),
    "usual": SlurmProfile(account="eval", partition="cpu", time="04:00:00", cpus_per_task=8, mem="32G"),
    "everything": SlurmProfile(
        account="eval",
        partition="cpu,long",
        qos="normal",
        reservation="night",
        constraint="avx512&ib",
        exclude="n[1-3]",
        nodelist="n7",
        dependency="afterok:12",
        comment="of the team",
        mail_user="me@example.com",
        mail_type="END,FAIL",
        time="2-00:00:00",
        cpus_per_task=8,
        mem=32768,
        gpus_per_node=1,
        requeue=False,
        additional_parameters={"wckey": "eval", "licenses": "scratch:1", "exclusive": ""},
    ),
    "quoting": SlurmProfile(comment='it\'s 100% "ours" #1; $(rm -rf ~) `x` \\ é', constraint="[rack1|rack2]", time=1),
}


def script_of(name: str) -> str:
    comment = "nemotron: llama-3-8b to /shared/me/results/run-a"
    variables = ("NEMOTRON_SEAL",) if name != "nothing" else ()
    return script(
        directives(PROFILES[name], NAME, FOLDER, comment, variables), ["python3", "-I", f"{FOLDER}/step.pyz", FOLDER]
    )


def container(image: Reference | Path) -> Container:
    return Container(
        name=NAME,
        image=image,
        command=("python3", "-I", f"{FOLDER}/container_start.py", "0", f"{FOLDER}/runner.pyz", f"{FOLDER}/plan.json"),
        mounts=(
            Mount("/shared/me/results/run-a", "/shared/me/results/run-a"),
            Mount(FOLDER, FOLDER, is_read_only=True),
            Mount("/shared/data", "/data", is_read_only=True),
        ),
        cpus=8,
        owner=(1000, 100),
        entry=f"{FOLDER}/entry.sh",
    )


def text_of(started: Commands) -> str:
    parts = {"prepare": started.prepare, "run": started.run, "clean_up": started.clean_up}
    return json.dumps(parts, indent=2) + "\n"


def everything() -> dict[str, str]:
    """File names to contents."""
    registry = Reference("nvcr.io", "nvidia/eval-factory/lm-evaluation-harness", None, DIGEST)
    squash = Path("/shared/images/lm-evaluation-harness.sqsh")
    return {
        **{f"{name}.sh": script_of(name) for name in PROFILES},
        **{f"{runtime}.json": text_of(commands(runtime, container(registry))) for runtime in RUNTIMES},
        **{
            f"{runtime}-sqsh.json": text_of(commands(runtime, container(squash)))
            for runtime in ("pyxis", "enroot", "apptainer")
        },
    }


if __name__ == "__main__":
    for file, text in everything().items():
        (GOLDEN / file).write_text(text, encoding="utf-8")
