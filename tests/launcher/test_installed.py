"""The wheel, as those have it who have no checkout."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.golden.framework import FILE
from tests.launcher.nemotron_process import ROOT, User


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def test_suites_profiles_and_runner_travel_with_it(user: User, installed: Path):
    done = user("steps", "run", "eval/model_eval", "-c", "base_en", "-d", PYTHONPATH=str(installed))
    job = json.loads(done.stdout)
    assert [task["name"] for task in job["plan"]["tasks"]][-1] == "gsm8k"
    user("steps", "run", "env/env_toml", "-c", "slurm", "output_path=slurm.toml", PYTHONPATH=str(installed))
    assert (user.folder / "slurm.toml").exists()


def test_variants_of_images_travel_with_it(installed: Path):
    code = "from nemotron.images.variants import variants; print(*variants())"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(installed)}, capture_output=True, text=True
    )
    assert "lm-evaluation-harness" in done.stdout.split(), done.stderr


def test_it_does_not_take_somebody_elses_repository_for_its_own(user: User, installed: Path):
    environ = {"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": ""}
    subprocess.run(["git", "init", "-q", str(installed)], check=True, env=environ)
    done = user("steps", "run", "eval/model_eval", "-d", PYTHONPATH=str(installed))
    assert json.loads(done.stdout)["plan"]["code"]["git_sha"] is None


def test_its_own_benchmarks_are_told_to_who_reads_an_image_and_listed_once(installed: Path):
    assert (installed / "core_evals/nemo_evaluator/framework.yml").read_bytes() == FILE.read_bytes()
    command = [sys.executable, "-m", "nemo_evaluator.cli.nemo_evaluator_main", "ls"]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(installed)}
    listed = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
    assert listed.count("* tiny_arithmetic") == 1


def test_it_has_the_three_commands(installed: Path):
    (entry_points,) = installed.glob("*.dist-info/entry_points.txt")
    commands = {line.split(" =")[0] for line in entry_points.read_text().splitlines() if " = " in line}
    assert {"nel", "nemo-evaluator", "nemotron"} <= commands
