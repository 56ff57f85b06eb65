"""What breaks on a real cluster: each fault has a clear word, and nothing that was finished is lost."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.slurm_world import ClusterUser, Slurm, answered, wait_until
from tests.fakes.relay import Relay

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[2]
ONE_AT_A_TIME = "evaluation.nemo_evaluator_config.config.params.parallelism=1"
ON_THE_NODE = {"container_runtime": "none", "python": sys.executable}
SUBMIT = ("steps", "run", "eval/model_eval", "-c", "quickstart", "--batch", "slurm_eval_direct")
TASK = ("-t", "tiny_arithmetic", ONE_AT_A_TIME)


class OwnCluster(Slurm):
    """A second Slurm like the testbed's, whose nodes and controller may be taken away."""

    @property
    def conf(self) -> str:
        return self.environ["SLURM_CONF"]

    def kill_controller(self) -> None:
        os.kill(int(Path(self.conf).with_name("slurmctld.pid").read_text()), signal.SIGKILL)

    def start_controller(self) -> subprocess.Popen[bytes]:
        path = f"{self.environ['PATH']}:/usr/sbin:/sbin"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(["slurmctld", "-D", "-f", self.conf], env=self.environ | {"PATH": path}, **quiet)


@pytest.fixture(scope="module")
def controllers():
    """Those that tests started in place of one they killed; they end after the cluster, whose end needs one."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def own_cluster(slurm, tmp_path_factory, controllers):
    folder = tmp_path_factory.mktemp("slurm")
    command = [sys.executable, str(ROOT / "scripts/lib/testbed/cluster.py"), str(folder)]
    with (folder / "out").open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            wait_until(lambda: (folder / "ready").exists() or process.poll() is not None, "a cluster of one's own")
            assert process.poll() is None, (folder / "out").read_text()
            yield OwnCluster(slurm | {"SLURM_CONF": str(folder / "slurm.conf")})
        finally:
            process.terminate()


@pytest.fixture
def own_user(cluster_user, own_cluster):
    user = cluster_user("submitit", **ON_THE_NODE)
    user.environ["SLURM_CONF"] = own_cluster.conf
    return user


def submit(user: ClusterUser, *words: str, samples: int = 10, delay: float = 0.0, **environ: str):
    user.server.control(behaviours=[{"delay": delay}])
    return user.submit(*TASK, *words, EVAL_LIMIT_SAMPLES=str(samples), **environ)


def ask_for(user: ClusterUser, number: int) -> None:
    wait_until(lambda: user.asked().total() >= number, f"{number} questions asked")


def test_drained_nodes_keep_a_job_waiting_and_say_why(own_user, own_cluster):
    own_cluster("scontrol", "update", "NodeName=n1,n2", "State=DRAIN", "Reason=maintenance")
    try:
        job = submit(own_user)
        shown = wait_until(lambda: (now := own_user.status(job))["reason"] and now, "a reason why the job waits")
        assert shown["phase"] == "queued" and "drain" in shown["reason"].lower(), shown
    finally:
        own_cluster("scontrol", "update", "NodeName=n1,n2", "State=RESUME")
    own_user.wait(job)
    assert own_user.read("summary.json") == {"tiny_arithmetic": "ok"}


def test_a_job_whose_node_fails_goes_on_on_another(own_user, own_cluster):
    job = submit(own_user, samples=20, delay=1.0)
    ask_for(own_user, 4)
    node = own_cluster.job(job.slurm_id)["NodeList"]
    own_cluster("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=broken")
    wait_until(lambda: own_cluster.job(job.slurm_id)["Restarts"] == "1", "started again")
    own_user.server.control(behaviours=[])
    own_user.wait(job)
    assert answered(own_user.results).total() == 20 == len(answered(own_user.results))


def test_a_job_outlives_the_controller_and_is_known_again_when_that_is_back(own_user, own_cluster, controllers):
    job = submit(own_user, samples=20, delay=1.0)
    ask_for(own_user, 3)
    own_cluster.kill_controller()
    own_user.server.control(behaviours=[])
    refused = own_user(*SUBMIT, *TASK, code=1, EVAL_RESULTS_DIR=str(own_user.folder / "other"))
    assert "controller" in refused and "Traceback" not in refused
    wait_until(lambda: (own_user.results / "summary.json").exists(), "a summary without a controller")
    assert wait_until(lambda: own_user.status(job)["phase"] == "completed", "its end is known without a controller")
    controllers.append(own_cluster.start_controller())
    own_user.wait(job)
    assert own_user.status(job)["exit_code"] == 0
    assert [row["backend_id"] for row in json.loads(own_user("jobs", "list", "--json"))] == [job.slurm_id]


def test_a_full_disk_fails_the_job_by_name_and_costs_no_answer(cluster_user):
    user = cluster_user("ssh", **ON_THE_NODE)
    user.results.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", user.results], check=True)
    try:
        job = submit(user, samples=60)
        user.wait(job, code=1)
        shown = user.status(job)
        assert shown["phase"] == "failed" and "space" in shown["reason"].lower(), shown
        before = answered(user.results)
        subprocess.run(["mount", "-o", "remount,size=40m", user.results], check=True)
        user.wait(submit(user, "resume=true", samples=60))
        assert user.read("summary.json") == {"tiny_arithmetic": "ok"}
        assert answered(user.results).total() == 60 and set(before) <= set(answered(user.results))
    finally:
        subprocess.run(["umount", "-l", user.results], check=True)


@pytest.mark.parametrize(
    ("way", "profile"),
    [
        ("submitit", {"account": "closed"}),
        ("ssh", {"account": "no-such-account"}),
        ("submitit", {"partition": "nowhere"}),
        ("ssh", {"qos": "none-such"}),
    ],
)
def test_what_slurm_would_refuse_leaves_one_clear_line_and_no_trace(cluster_user, way, profile):
    """Found before anything is made, and by Slurm itself where nobody looks first."""
    user = cluster_user(way, **{**ON_THE_NODE, **profile})
    ((key, value),) = profile.items()
    for words, code in (((), 2), (("preflight=false",), 1)):
        said = user(*SUBMIT, *words, code=code)
        assert key in said.lower() and value in said and "Traceback" not in said
        assert not user.job_folders.exists() or not list(user.job_folders.iterdir())
        assert json.loads(user("jobs", "list", "--json")) == []


def test_a_time_beyond_the_partitions_limit_is_told_before_anyone_waits(cluster_user):
    user = cluster_user("ssh", **ON_THE_NODE, partition="short", time="01:00:00")
    said = user(*SUBMIT, code=2)
    assert "short" in said and "00:02:00" in said


@pytest.fixture
def fragile(cluster_user, ssh_config, tmp_path):
    """Makes a user whose way to the login node breaks at the first yes."""
    with contextlib.ExitStack() as stack:

        def make(breaks) -> ClusterUser:
            port = next(
                line.split()[1] for line in ssh_config.read_text().splitlines() if line.strip().startswith("Port")
            )
            relay = stack.enter_context(Relay(int(port), lambda: breaks(user)))
            config = tmp_path / "ssh_config"
            # ssh takes the first value that it meets; the host key goes by the server's own address.
            block = f"Host testbed-login\n  Port {relay.port}\n  HostKeyAlias [127.0.0.1]:{port}\n"
            config.write_text(block + ssh_config.read_text())
            user = cluster_user("ssh", host="testbed-login", **ON_THE_NODE)
            user.environ["NEMOTRON_SSH_CONFIG"] = str(config)
            return user

        yield make


def is_queued(user: ClusterUser, cluster: Slurm) -> bool:
    return str(user.job_folders) in cluster("squeue", "-h", "-t", "all", "-o", "%Z")


def jobs_of(user: ClusterUser, cluster: Slurm) -> list[str]:
    """Every job of theirs that Slurm has ever had, by where it works."""
    listed = cluster("sacct", "-n", "-P", "-X", "-o", "JobID,WorkDir", "-S", "now-1hours").splitlines()
    return [line.split("|")[0] for line in listed if str(user.job_folders) in line]


def test_a_connection_that_breaks_after_sbatch_ran_submits_no_second_job(fragile, cluster):
    user = fragile(lambda user: is_queued(user, cluster))
    job = submit(user)
    user.wait(job)
    assert jobs_of(user, cluster) == [job.slurm_id]
    assert user.read("summary.json") == {"tiny_arithmetic": "ok"}


def test_a_connection_that_breaks_while_files_travel_is_made_again(fragile, cluster):
    user = fragile(lambda user: user.job_folders.exists() and any(user.job_folders.iterdir()))
    job = submit(user)
    user.wait(job)
    assert jobs_of(user, cluster) == [job.slurm_id]
    assert user.read("summary.json") == {"tiny_arithmetic": "ok"}
