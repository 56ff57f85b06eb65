"""One life of a job on its node, from the batch step's start to the exit code that Slurm gets."""

import json
import signal
import sys
import time
from pathlib import Path

import pytest

from nemotron.slurm.folder import CANCELLED, SECRETS
from tests.launcher.batch.node import ENDS_WHEN_TOLD, wait_until

pytestmark = pytest.mark.timeout(600)

VALUES = {"A_TOKEN": "sk-not-a-real-key-`b` \"q\" 'a' $x \\ \n second line é", "EMPTY_TOKEN": "-"}
SHOWS = "import json, os; print('ENV', json.dumps(dict(os.environ)))"


def environ_of(node) -> dict[str, str]:
    line = next(line for line in node.log().splitlines() if line.startswith("ENV "))
    environ: dict[str, str] = json.loads(line[4:])
    return environ


@pytest.fixture
def scontrol(node, tmp_path):
    """Records what it is asked, and agrees; of the job it says what is in a file."""
    program, shown = tmp_path / "bin/scontrol", tmp_path / "shown"
    program.parent.mkdir()
    shown.write_text("JobId=7 JobState=RUNNING Reason=None PreemptTime=None")
    program.write_text(f'#!/bin/sh\n[ "$1" = show ] && exec cat {shown}\necho "$@" >> {tmp_path}/asked\n')
    program.chmod(0o755)
    node.environ["PATH"] = f"{program.parent}:/usr/bin:/bin"
    return program, lambda: (tmp_path / "asked").read_text() if (tmp_path / "asked").exists() else "", shown


@pytest.mark.parametrize("code", [0, 1, 2, 75, 130])
def test_the_exit_code_is_the_runners(node, code):
    node.job(f"raise SystemExit({code})")
    assert node.run() == code
    assert (node.marker().is_over, node.marker().exit_code) == (True, code)


def test_the_marker_tells_of_a_job_at_work(node):
    node.job(ENDS_WHEN_TOLD)
    node.start(restarts=2)
    node.wait_for("up")
    marker = node.marker()
    assert (marker.job_id, marker.restarts, marker.is_over, marker.exit_code) == ("7", 2, False, None)


def test_secrets_arrive_whatever_is_in_them(node):
    node.job(SHOWS, secrets=VALUES)
    assert node.run() == 0
    assert {name: environ_of(node)[name] for name in VALUES} == VALUES


def test_a_job_without_secrets_has_no_file_of_them(node):
    node.job(SHOWS)
    assert node.run() == 0 and not (node.folder / SECRETS).exists()


def test_the_key_reaches_nothing_that_the_step_starts(node):
    node.job(SHOWS, secrets=VALUES)
    node.run()
    assert "NEMOTRON_SEAL" not in environ_of(node)


def test_secrets_stay_sealed_while_the_job_may_start_again_and_go_with_its_last_start(node):
    node.job(ENDS_WHEN_TOLD, secrets=VALUES, max_requeues=1)
    first = node.start()
    node.wait_for("up")
    assert VALUES["A_TOKEN"].encode() not in (node.folder / SECRETS).read_bytes()
    first.send_signal(signal.SIGTERM)
    assert first.wait(180) == 75 and (node.folder / SECRETS).exists()
    (node.folder / "job.log").unlink()
    node.start(restarts=1)
    node.wait_for("up")
    assert not (node.folder / SECRETS).exists()


def test_secrets_go_when_the_job_is_over(node):
    node.job("", secrets=VALUES)
    node.run()
    assert not (node.folder / SECRETS).exists()


@pytest.mark.parametrize(("key", "says"), [("", "did not arrive"), ("00" * 32, "cannot be read")])
def test_without_its_key_the_job_says_so_and_ends(node, key, says):
    node.job(SHOWS, secrets=VALUES)
    node.environ["NEMOTRON_SEAL"] = key
    assert node.run() == 1
    assert says in node.marker().reason and "ENV" not in node.log()


def test_the_runner_learns_which_job_it_is_and_nothing_else_of_the_node(node):
    node.job(
        SHOWS, run=[sys.executable, "-I", str(node.folder / "container_start.py"), "0", str(node.folder / "runner.py")]
    )
    node.environ |= {"SLURM_CLUSTER_NAME": "c"}
    node.run(restarts=1)
    environ = environ_of(node)
    assert [environ[f"SLURM_{name}"] for name in ("JOB_ID", "CLUSTER_NAME", "RESTART_COUNT")] == ["7", "c", "1"]


def test_the_users_variables_win_over_the_images(node):
    """The image's: what the container's first process has before it reads its input."""
    image = ["env", "HF_HOME=/of/the/image", "ONLY=image"]
    start = [sys.executable, "-I", str(node.folder / "container_start.py"), "0", str(node.folder / "runner.py")]
    node.job(SHOWS, environ={"HF_HOME": "/of/the/user"}, run=[*image, *start])
    node.run()
    assert (environ_of(node)["HF_HOME"], environ_of(node)["ONLY"]) == ("/of/the/user", "image")


def test_the_chosen_environments_commands_come_first(node):
    node.job(SHOWS, first_in_path="/opt/harness/bin")
    node.run()
    assert environ_of(node)["PATH"].startswith("/opt/harness/bin:/")


@pytest.mark.parametrize("signal_of_slurm", [signal.SIGUSR1, signal.SIGUSR2])
def test_when_its_time_is_up_the_job_stops_and_goes_back_into_the_queue(node, scontrol, signal_of_slurm):
    node.job(ENDS_WHEN_TOLD)
    step = node.start(restarts=1)
    node.wait_for("up")
    step.send_signal(signal_of_slurm)
    assert step.wait(180) == 75
    assert scontrol[1]() == "requeue 7\n"
    assert not node.marker().is_over and "2 of 3 times" in node.marker().reason


@pytest.mark.parametrize("slurm_tells", [True, False])
def test_a_step_that_was_told_before_it_listened_sees_by_itself_that_its_time_is_up(node, scontrol, slurm_tells):
    node.environ |= {"SLURM_JOB_END_TIME": str(int(time.time()) + 65)} if slurm_tells else {}
    node.job(ENDS_WHEN_TOLD, time_limit=600 if slurm_tells else 65)
    assert node.run() == 75
    assert scontrol[1]() == "requeue 7\n" and "its time limit was up" in node.marker().reason


def test_it_goes_on_as_often_as_it_may(node, scontrol):
    node.job(ENDS_WHEN_TOLD, max_requeues=1)
    step = node.start(restarts=1)
    node.wait_for("up")
    step.send_signal(signal.SIGUSR2)
    assert step.wait(180) == 75
    assert scontrol[1]() == "" and node.marker().is_over and "resume=true" in node.marker().reason


def test_a_cluster_that_does_not_requeue_is_quoted(node, scontrol):
    scontrol[0].write_text("#!/bin/sh\necho 'Requested operation is presently disabled' >&2; exit 1\n")
    node.job(ENDS_WHEN_TOLD)
    step = node.start()
    node.wait_for("up")
    step.send_signal(signal.SIGUSR2)
    assert step.wait(180) == 75
    assert node.marker().is_over and "presently disabled" in node.marker().reason


def test_what_finished_in_the_last_seconds_is_complete(node, scontrol):
    node.job(ENDS_WHEN_TOLD.replace("75", "0"))
    step = node.start()
    node.wait_for("up")
    step.send_signal(signal.SIGUSR2)
    assert step.wait(180) == 0
    assert scontrol[1]() == "" and node.marker().exit_code == 0


def test_a_cancelled_or_preempted_job_is_left_to_slurm(node, scontrol):
    node.job(ENDS_WHEN_TOLD)
    step = node.start()
    node.wait_for("up")
    step.send_signal(signal.SIGTERM)
    assert step.wait(180) == 75
    assert scontrol[1]() == "" and "cancelled or preempted" in node.marker().reason


@pytest.mark.parametrize("tells_the_step", [True, False])
def test_a_job_that_stops_in_the_time_of_grace_before_a_preemption_goes_on(node, scontrol, tells_the_step):
    """Slurm starts only those again that it had to end itself."""
    scontrol[2].write_text("JobId=7 JobState=RUNNING Reason=None PreemptEligibleTime=Unknown PreemptTime=2026-11-30T01")
    node.job(ENDS_WHEN_TOLD if tells_the_step else "raise SystemExit(75)")
    step = node.start()
    if tells_the_step:
        node.wait_for("up")
        step.send_signal(signal.SIGTERM)
    assert step.wait(180) == 75
    assert scontrol[1]() == "requeue 7\n" and "it was preempted; it goes on" in node.marker().reason


def test_a_runner_that_somebody_stopped_ends_the_job(node, scontrol):
    node.job("raise SystemExit(75)")
    assert node.run() == 75 and node.marker().is_over
    assert scontrol[1]() == ""


def test_a_job_that_its_user_cancelled_never_goes_on(node, scontrol):
    node.job(ENDS_WHEN_TOLD, secrets=VALUES)
    step = node.start()
    node.wait_for("up")
    (node.folder / CANCELLED).touch()
    step.send_signal(signal.SIGUSR2)
    assert step.wait(180) == 75
    assert scontrol[1]() == "" and not (node.folder / SECRETS).exists()
    assert node.run(restarts=1) == 75 and node.log().count("up") == 1


def test_a_job_that_slurm_started_too_often_does_nothing_more(node):
    node.job("print('ran')", secrets=VALUES)
    assert node.run(restarts=4) == 75
    assert "ran" not in node.log() and "max_requeues" in node.marker().reason
    assert not (node.folder / SECRETS).exists()


def test_when_the_step_is_killed_nothing_runs_on(node):
    pid = node.folder / "pid"
    node.job(f"import os, pathlib; pathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\n{ENDS_WHEN_TOLD}")
    step = node.start()
    node.wait_for("up")
    step.kill()
    wait_until(lambda: not Path(f"/proc/{pid.read_text()}").exists())


def test_a_tool_that_takes_long_before_it_starts_anything_is_ended_at_once(node):
    node.job("", prepare=[["sh", "-c", "echo up; exec sleep 600"]])
    child = node.start()
    node.wait_for("up")
    child.send_signal(signal.SIGTERM)
    assert child.wait(180) == 75


def test_containers_are_prepared_and_cleaned_up_also_when_they_fail(node):
    node.job(
        "raise SystemExit(1)",
        prepare=[["touch", str(node.folder / "made")]],
        clean_up=[["rm", str(node.folder / "made")]],
    )
    assert node.run() == 1 and not (node.folder / "made").exists()


def test_what_a_killed_life_left_behind_is_removed_before_the_next(node):
    rest = node.folder / "rest"
    node.job(f"import os; print('left', os.path.exists({str(rest)!r}))", clean_up=[["rm", "-f", str(rest)]])
    rest.touch()
    assert node.run(restarts=1) == 0 and "left False" in node.log()


def test_what_cannot_be_prepared_is_not_run(node):
    node.job("print('ran')", prepare=[["sh", "-c", "echo no such image >&2; exit 125"]])
    assert node.run() == 125
    assert "ran" not in node.log() and "no such image" in node.marker().reason


def test_a_tools_complaint_is_the_reason_not_its_last_line(node):
    says = "echo \"srun: unrecognized option '--container-image=x'\"; echo 'Try \"srun --help\" for more information'"
    node.job("", run=["sh", "-c", f"{says}; exit 255"])
    assert node.run() == 255
    assert node.marker().reason == "sh ended with 255: srun: unrecognized option '--container-image=x'"


def test_a_tool_that_is_not_there_is_named(node):
    node.job("", run=["no-such-tool", "run"])
    assert node.run() == 1
    assert "no-such-tool cannot be started" in node.marker().reason


def test_the_runners_refusal_is_the_reason(node):
    node.job("import sys; print('Error: no such task', file=sys.stderr); sys.exit(2)")
    assert node.run() == 2 and node.marker().reason == "no such task"


def test_a_results_folder_that_cannot_be_made_is_named(node):
    node.folder.mkdir()
    (node.folder / "file").touch()
    node.job("", output_dir=str(node.folder / "file/results"))
    assert node.run() == 1 and str(node.folder / "file/results") in node.marker().reason
