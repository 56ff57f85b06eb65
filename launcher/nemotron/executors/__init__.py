"""The one place that knows all backends."""

from collections.abc import Mapping

from nemotron.errors import UsageError
from nemotron.executors.base import Executor
from nemotron.executors.docker import DockerExecutor
from nemotron.executors.local import LocalExecutor
from nemotron.profiles import DockerProfile, LocalProfile, Profile


def executor_for(profile: Profile, environ: Mapping[str, str]) -> Executor:
    match profile:
        case LocalProfile():
            return LocalExecutor(profile, environ)
        case DockerProfile():
            return DockerExecutor(profile, environ)
        case _:
            raise UsageError(
                f"This version does not submit to {profile.executor} yet: `-d` shows the job that it would be, "
                "local and docker profiles run it."
            )
