import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest

from tests.conftest import _testbed
from tests.e2e.slurm_world import CANARY, ClusterUser, Slurm
from tests.launcher.conftest import user
from tests.nel import ServerProcess, server, server_process

__all__ = ["server", "server_process", "user"]

Way = Literal["submitit", "ssh"]
SUBMIT_SIDE = f"{Path(sys.executable).parent}:/usr/bin:/bin"


@pytest.fixture(scope="session")
def cluster(slurm: dict[str, str]) -> Slurm:
    return Slurm(slurm)


@pytest.fixture(scope="session")
def harness_image() -> str:
    return _testbed("NEL_TEST_IMAGE", "image")


@pytest.fixture
def cluster_user(
    tmp_path: Path, cluster: Slurm, ssh_config: Path, server: ServerProcess, harness_image: str
) -> Iterator[Callable[..., ClusterUser]]:
    """Makes a user who submits that way; whoever comes through SSH has no Slurm at hand and passes a jump host."""

    def make(way: Way, **profile: object) -> ClusterUser:
        places = {
            "submitit": ({"tunnel": "local"}, {"SLURM_CONF": cluster.environ["SLURM_CONF"]}),
            "ssh": ({"host": "testbed-behind"}, {"NEMOTRON_SSH_CONFIG": str(ssh_config)}),
        }
        place, environ = places[way]
        server.control(model="fake-model", api_key=CANARY, answer="Answer: 3")
        folder = tmp_path / way
        folder.mkdir()
        return ClusterUser(
            folder,
            server,
            {
                "PATH": SUBMIT_SIDE,
                "LANG": os.environ.get("LANG", "C.UTF-8"),
                "HOME": str(folder / "home"),
                "NEMOTRON_HOME": str(folder / "records"),
                "EVAL_ENDPOINT_URL": f"{server.url}/completions",
                "EVAL_MODEL_HANDLE": "fake-model",
                "EVAL_RESULTS_DIR": str(folder / "results"),
                "EVAL_HARNESS_IMAGE": harness_image,
                "ENDPOINT_TOKEN": CANARY,
                **environ,
            },
            {
                **{"executor": "slurm", "account": "eval", "partition": "cpu", "time": "00:10:00"},
                **{"cpus_per_task": 2, "mem": "2G", "container_runtime": "podman"},
                **{"remote_job_dir": str(folder / "cluster-jobs"), **place, **profile},
            },
        )

    yield make
    for folder in tmp_path.glob("*/cluster-jobs/*"):
        cluster("scancel", f"--name={folder.name}")
