"""A profile decides who runs its jobs."""

import pytest

from nemotron.errors import UsageError
from nemotron.executors import executor_for
from nemotron.executors.docker import DockerExecutor
from nemotron.executors.local import LocalExecutor
from nemotron.profiles import DockerProfile, LocalProfile, SlurmProfile


@pytest.mark.parametrize(("profile", "kind"), [(LocalProfile(), LocalExecutor), (DockerProfile(), DockerExecutor)])
def test_every_backend_has_its_executor(profile, kind):
    assert isinstance(executor_for(profile, {}), kind)


def test_one_that_is_not_there_yet_says_what_is():
    with pytest.raises(UsageError, match=r"slurm yet.*-d.*local and docker"):
        executor_for(SlurmProfile(), {})
