"""The fake cluster does what the tests that lean on it take for granted."""

import os
import subprocess
import time

import pytest

from tests.fakes.slurm import FakeSlurm

pytestmark = pytest.mark.timeout(300)
COLUMNS = "--Format=JobID:10,State:20,RestartCnt:5,Reason:20"


@pytest.fixture
def slurm(tmp_path):
    with FakeSlurm.at(tmp_path / "slurm") as slurm:
        slurm.turn(runs=True, kill_wait=1.0)
        yield slurm


def run(slurm, *command, stdin=""):
    return subprocess.run(command, env=slurm.environ(), input=stdin, capture_output=True, text=True, timeout=180)


def submit(slurm, tmp_path, body, *options):
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\n#SBATCH --job-name=mine --output={tmp_path}/out --open-mode=append\n{body}\n")
    return int(run(slurm, "sbatch", "--parsable", *options, str(script)).stdout)


def test_a_job_runs_with_what_export_lets_through(slurm, tmp_path):
    os.environ["NOT_FOR_JOBS"] = "1"
    try:
        job = submit(slurm, tmp_path, 'echo "$A $NOT_FOR_JOBS $SLURM_JOB_ID"', "--export=NONE,A=b")
    finally:
        del os.environ["NOT_FOR_JOBS"]
    slurm.wait(job, "COMPLETED")
    assert (tmp_path / "out").read_text() == f"b  {job}\n"


def test_a_preempted_job_starts_again_and_counts_its_restarts(slurm, tmp_path):
    job = submit(slurm, tmp_path, 'echo "life $SLURM_RESTART_COUNT"; [ -n "$SLURM_RESTART_COUNT" ] || sleep 600')
    while not (tmp_path / "out").exists() or not (tmp_path / "out").read_text():
        time.sleep(0.02)
    slurm.preempt(job)
    assert slurm.wait(job, "COMPLETED")["restarts"] == 1
    assert (tmp_path / "out").read_text() == "life \nlife 1\n"
    said = run(slurm, "sacct", "--noheader", "--parsable2", "--duplicates", f"--jobs={job}", "--format=State,ExitCode")
    assert said.stdout == "PREEMPTED|0:15\nCANCELLED|0:15\nCOMPLETED|0:0\nCOMPLETED|0:0\n"


def test_the_time_limit_warns_and_then_ends_a_job(slurm, tmp_path):
    slurm.turn(minute=2.0)
    body = "trap 'echo warned' USR1\nwhile :; do sleep 0.1; done"
    job = submit(slurm, tmp_path, body, "--time=1", "--signal=B:USR1@30")
    slurm.wait(job, "TIMEOUT")
    assert "warned" in (tmp_path / "out").read_text()


def test_scancel_minds_the_user(slurm, tmp_path):
    job = submit(slurm, tmp_path, "sleep 600")
    slurm.wait(job, "RUNNING")
    run(slurm, "scancel", "--user=somebody-else", str(job))
    assert run(slurm, "squeue", "--noheader", "--states=all", f"--jobs={job}", COLUMNS).stdout.split()[1] == "RUNNING"
    run(slurm, "scancel", str(job))
    assert slurm.wait(job, "CANCELLED")["by"] == str(os.getuid())


def test_a_log_folder_that_is_not_there_fails_the_job(slurm, tmp_path):
    job = submit(slurm, tmp_path, "true", f"--output={tmp_path}/none/log")
    assert slurm.wait(job, "FAILED")["lives"][-1]["exit"] == "0:53"


def test_images_win_over_variables_that_are_not_named(slurm):
    slurm.turn(image_env={"A": "image", "B": "image"})
    command = [
        "env",
        "A=user",
        "B=user",
        "srun",
        "--container-image=x.sqsh",
        "--container-env=A",
        "sh",
        "-c",
        "echo $A $B",
    ]
    assert run(slurm, *command).stdout == "user image\n"


def test_limits_banners_and_answers_of_ones_own(slurm, tmp_path):
    slurm.turn(max_submit=0, banner="Welcome")
    slurm.says("sinfo", "cpu\n", when="--noheader")
    assert "AssocMaxSubmitJobLimit" in run(slurm, "sbatch", stdin="#!/bin/sh\n").stderr
    assert run(slurm, "sinfo", "--noheader").stdout == "Welcome\ncpu\n"
    assert [call.argv for call in slurm.calls("sinfo")] == [["--noheader"]]
