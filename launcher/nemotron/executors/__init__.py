"""The one place that knows all backends. Each is loaded when it is asked for: a job on this machine needs no SSH."""

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from nemotron.errors import UsageError
from nemotron.executors.base import Executor
from nemotron.job import Job
from nemotron.profiles import DockerProfile, LocalProfile, Profile, SlurmProfile

if TYPE_CHECKING:
    from nemotron.executors.cluster import ClusterExecutor


def executor_for(profile: Profile, environ: Mapping[str, str]) -> Executor:
    match profile:
        case LocalProfile():
            module, name = "local", "LocalExecutor"
        case DockerProfile():
            module, name = "docker", "DockerExecutor"
        case SlurmProfile():
            module, name = ("slurm", "SlurmExecutor") if profile.is_here else ("ssh", "SshExecutor")
        case _:
            raise UsageError(
                f"This version does not submit to {profile.executor} yet: `-d` shows the job that it would be, "
                "local, docker and slurm profiles run it."
            )
    backend = getattr(importlib.import_module(f"nemotron.executors.{module}"), name)
    return cast(Callable[[Profile, Mapping[str, str]], Executor], backend)(profile, environ)


def shown(profile: Profile, job: Job, environ: Mapping[str, str]) -> Mapping[str, list[str]]:
    """What a backend would be given, where that can be read."""
    if not isinstance(profile, SlurmProfile):
        return {}
    return cast("ClusterExecutor", executor_for(profile, environ)).shown(job)
