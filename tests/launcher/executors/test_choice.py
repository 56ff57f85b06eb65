"""A profile decides who runs its jobs."""

import pytest

from nemotron.errors import UsageError
from nemotron.executors import executor_for
from nemotron.executors.docker import DockerExecutor
from nemotron.executors.local import LocalExecutor
from nemotron.executors.slurm import SlurmExecutor
from nemotron.executors.ssh import SshExecutor
from nemotron.profiles import DGXCloudProfile, DockerProfile, LeptonProfile, LocalProfile, SlurmProfile


@pytest.mark.parametrize(
    ("profile", "kind"),
    [
        (LocalProfile(), LocalExecutor),
        (DockerProfile(), DockerExecutor),
        (SlurmProfile(), SlurmExecutor),
        (SlurmProfile(host="localhost"), SlurmExecutor),
        (SlurmProfile(host="login"), SshExecutor),
        (SlurmProfile(host="login", tunnel="local"), SlurmExecutor),
        (SlurmProfile(host="localhost", tunnel="ssh"), SshExecutor),
    ],
)
def test_every_backend_has_its_executor(profile, kind):
    assert isinstance(executor_for(profile, {}), kind)


@pytest.mark.parametrize(
    "profile", [LeptonProfile(resource_shape="cpu.large"), DGXCloudProfile(base_url="https://host", project="p")]
)
def test_one_that_is_not_there_yet_says_what_is(profile):
    with pytest.raises(UsageError, match=rf"{profile.executor} yet.*-d.*local, docker and slurm"):
        executor_for(profile, {})
