"""A token travels in one file of mode 0600 until the job has begun, and is then only the evaluation has it."""

import secrets
import stat
import sys
from pathlib import Path

import pytest

from nemotron.slurm.folder import SECRETS
from tests.e2e.slurm_world import ClusterUser, Slurm, Submitted, files_with, wait_until

pytestmark = pytest.mark.timeout(600)

CANARY = f"sk-not-a-real-key-canary-{secrets.token_hex(8)}"
"""Of these tests alone: they look at every process of the machine."""
ODD = "sk-not-a-real-key \"'`$(id)`$HOME\\ \n second line"
HOLD = {"additional_parameters": {"hold": ""}}


@pytest.fixture
def machinery(slurm) -> list[Path]:
    """Where Slurm's daemons and the container engine keep their state, their spools and their logs."""
    testbed = Path(slurm["SLURM_CONF"]).parents[1]
    return [testbed / "slurm", testbed / "podman", testbed / "cache/containers/overlay-containers"]


@pytest.mark.parametrize(("way", "runtime"), [("submitit", "podman"), ("ssh", "none")])
def test_a_token_is_nowhere_but_sealed_in_one_file_and_then_in_the_evaluation(
    cluster_user, cluster, machinery, way, runtime
):
    user = cluster_user(way, container_runtime=runtime, python=sys.executable, secret_vars=["ODD_TOKEN"], **HOLD)
    user.environ |= {"ENDPOINT_TOKEN": CANARY, "ODD_TOKEN": ODD}
    user.server.control(behaviours=[{"delay": 1.0}], api_key=CANARY)
    job = user.submit("-t", "tiny_arithmetic", EVAL_LIMIT_SAMPLES="40")
    (waiting,) = user.job_folders.glob(f"*/{SECRETS}")
    assert stat.S_IMODE(waiting.stat().st_mode) == 0o600
    assert not files_with(CANARY, [user.folder, *machinery])
    cluster("scontrol", "release", job.slurm_id)
    wait_until(lambda: user.asked().total() >= 3, "the evaluation under way")
    assert_is_only_in_the_evaluation(user, cluster, job, machinery)
    user("jobs", "cancel", job.id)
    user.wait(job, code=75)
    user("jobs", "logs", job.id)
    assert not waiting.exists()
    assert not files_with(CANARY, [user.folder, *machinery])
    assert CANARY not in "".join(user.said)


def assert_is_only_in_the_evaluation(user: ClusterUser, cluster: Slurm, job: Submitted, machinery: list[Path]) -> None:
    assert not files_with(CANARY, [user.folder, *machinery])
    assert CANARY not in cluster("scontrol", "show", "job", "-d", job.slurm_id)
    assert CANARY not in cluster("scontrol", "write", "batch_script", job.slurm_id, "-")
    commands, holders = processes_with(CANARY)
    assert not commands
    assert holders, "the evaluation has its token"
    assert all(b"runner.pyz" in command or b"nemo" in command for command in holders.values()), holders
    runner = next(pid for pid, command in holders.items() if b"runner.pyz" in command)
    assert f"ODD_TOKEN={ODD}".encode() in Path(f"/proc/{runner}/environ").read_bytes().split(b"\0")


def processes_with(text: str) -> tuple[list[bytes], dict[int, bytes]]:
    """Command lines that hold the text, and the commands by process of environments that do, but for this test's own
    children."""
    commands, holders = [], {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command, environ = ((process / name).read_bytes() for name in ("cmdline", "environ"))
        except OSError:
            continue
        if text.encode() in command:
            commands.append(command)
        if text.encode() in environ:
            holders[int(process.name)] = command
    return commands, holders


def test_an_endpoint_without_a_token_needs_none(cluster_user):
    user = cluster_user("submitit")
    user.server.control(api_key=None)
    del user.environ["ENDPOINT_TOKEN"]
    job = user.submit("-t", "tiny_arithmetic", EVAL_LIMIT_SAMPLES="2", EVAL_API_KEY_NAME="null")
    user.wait(job)
    assert user.read("summary.json") == {"tiny_arithmetic": "ok"}
    assert all("authorization" not in entry["headers"] for entry in user.server.log())
