"""The one place that knows all backends."""

from collections.abc import Mapping

from nemotron.errors import UsageError
from nemotron.executors.base import Executor
from nemotron.executors.cluster import ClusterExecutor
from nemotron.executors.docker import DockerExecutor
from nemotron.executors.local import LocalExecutor
from nemotron.executors.slurm import SlurmExecutor
from nemotron.executors.ssh import SshExecutor
from nemotron.job import Job
from nemotron.profiles import DockerProfile, LocalProfile, Profile, SlurmProfile


def executor_for(profile: Profile, environ: Mapping[str, str]) -> Executor:
    match profile:
        case LocalProfile():
            return LocalExecutor(profile, environ)
        case DockerProfile():
            return DockerExecutor(profile, environ)
        case SlurmProfile():
            return SlurmExecutor(profile, environ) if profile.is_here else SshExecutor(profile, environ)
        case _:
            raise UsageError(
                f"This version does not submit to {profile.executor} yet: `-d` shows the job that it would be, "
                "local, docker and slurm profiles run it."
            )


def shown(profile: Profile, job: Job, environ: Mapping[str, str]) -> Mapping[str, list[str]]:
    """What a backend would be given, where that can be read."""
    executor = executor_for(profile, environ) if isinstance(profile, SlurmProfile) else None
    return executor.shown(job) if isinstance(executor, ClusterExecutor) else {}
