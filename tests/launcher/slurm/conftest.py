import os

import pytest

from nemotron.slurm.job_ref import JobRef
from nemotron.transport.here import Here
from tests.fakes.slurm import FakeSlurm
from tests.launcher.slurm.clusters import FakeCluster, RealCluster, refer


@pytest.fixture
def fake(tmp_path):
    with FakeSlurm.at(tmp_path / "slurm") as fake:
        yield fake


@pytest.fixture
def session(fake):
    return Here(fake.environ(os.environ))


@pytest.fixture
def job(fake, tmp_path):
    """A job of the fake cluster, in the state that is asked for, and how this project refers to it."""

    def make(state="PENDING", *, name="mine", cluster="", **known) -> JobRef:
        number = fake.add(name, state, **known)
        return refer(number, name, tmp_path / name, cluster)

    return make


@pytest.fixture(params=["fake", "real"])
def cluster(request, tmp_path):
    """The same questions to the fake and to the testbed's Slurm."""
    if request.param == "fake":
        fake = request.getfixturevalue("fake")
        fake.turn(runs=True, kill_wait=2.0)
        yield FakeCluster(fake, tmp_path)
    else:
        real = RealCluster(request.getfixturevalue("slurm"), tmp_path)
        yield real
        real.close()
