"""Scripts and command lines of Slurm jobs, as they were reviewed; and what holds for all of them."""

import shlex
import subprocess

import pytest

from tests.golden.slurm_jobs import GOLDEN, PROFILES, everything, script_of


@pytest.mark.parametrize("file", everything())
def test_a_job_is_what_was_reviewed(file):
    assert everything()[file] == (GOLDEN / file).read_text(encoding="utf-8")


def test_nothing_is_left_of_what_is_gone():
    assert {path.name for path in GOLDEN.iterdir()} == everything().keys()


@pytest.mark.parametrize("name", PROFILES)
def test_bash_reads_every_script_and_finds_nothing_to_decide(name):
    text = script_of(name)
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    trap, command = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert trap == "trap '' USR2" and shlex.split(command)[0] == "exec"


@pytest.mark.parametrize("name", PROFILES)
def test_a_script_fits_on_a_screen(name):
    lines = script_of(name).splitlines()
    assert len(lines) < 40 and max(map(len, lines)) < 1000
