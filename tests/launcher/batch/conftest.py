import contextlib
import os

import pytest

from nemotron.executors.slurm import SlurmExecutor
from nemotron.executors.ssh import SshExecutor
from nemotron.job import Job
from nemotron.profiles import SlurmProfile
from nemotron.transport.here import Here
from tests.fakes.slurm import FakeSlurm
from tests.launcher.batch.node import Node

TOKEN = "sk-not-a-real-key-`b` \"q\" 'a' $x"


@pytest.fixture
def node(tmp_path):
    with contextlib.closing(Node(tmp_path / "job")) as node:
        yield node


@pytest.fixture
def slurm(tmp_path):
    with FakeSlurm.at(tmp_path / "slurm") as slurm:
        yield slurm


@pytest.fixture
def environ(slurm, tmp_path):
    """Of whoever submits; the canaries are not for the job."""
    (tmp_path / "home").mkdir()
    own = {"HOME": str(tmp_path / "home"), "ENDPOINT_TOKEN": TOKEN, "CANARY_TOKEN": "sk-not-a-real-key-canary"}
    return slurm.environ({"PATH": os.environ["PATH"], "CANARY_SETTING": "canary-of-the-shell", **own})


@pytest.fixture
def job(tmp_path):
    """Makes a job for these results."""

    def make(**fields) -> Job:
        output_dir = str(tmp_path / "results")
        model = {"id": "llama-3-8b", "endpoint_url": "http://host/v1/completions", "endpoint_url_variable": None}
        plan = {"model": model, "tasks": [{"name": "gsm8k"}], "overwrite": False, "resume": False}
        plan |= fields.pop("plan", {})
        known = {"secrets": ("ENDPOINT_TOKEN",), "runner": b"", "env": {"EVAL_X": "1"}}
        return Job(**{"name": "eval-base-en", "plan": plan, "output_dir": output_dir, **known, **fields})

    return make


@pytest.fixture(params=["local", "ssh"])
def executor(request, environ, monkeypatch):
    """Makes one for a profile: by submitit here, and by sbatch through a session, which is to this machine, too."""

    def make(**keys):
        profile = SlurmProfile(**{"container_runtime": "none", **keys})
        kind = SlurmExecutor if request.param == "local" else SshExecutor
        executor = kind(profile, environ)
        monkeypatch.setattr(executor, "session", lambda: Here(environ))
        return executor

    return make
