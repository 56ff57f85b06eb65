"""Which checks a profile calls for."""

from collections.abc import Iterator

from nemotron.doctor.docker import DockerPatient
from nemotron.doctor.examination import Check
from nemotron.doctor.finding import Finding, ok
from nemotron.doctor.local import LocalPatient
from nemotron.doctor.slurm import SlurmPatient
from nemotron.errors import LauncherError, UsageError
from nemotron.job import Job
from nemotron.profiles import DockerProfile, LocalProfile, Profile, SlurmProfile
from nemotron.request import CompiledJob

DEFAULT_WAIT_SECONDS = 300.0


def checks_of(
    profile: Profile, suite: CompiledJob | LauncherError, environ: dict[str, str], *, has_job: bool, wait: float
) -> list[Check]:
    """`suite` is the job that an evaluation would be, or why there can be none."""
    job = suite.job if isinstance(suite, CompiledJob) else None
    values = suite.environ if isinstance(suite, CompiledJob) else environ
    first = Check("suite", lambda: _suite_findings(suite, job))
    match profile:
        case LocalProfile():
            return [first, *LocalPatient(profile, job, values).checks()]
        case DockerProfile():
            return [first, *DockerPatient(profile, job, values).checks(has_container=has_job)]
        case SlurmProfile():
            return [first, *SlurmPatient(profile, job, values, wait).checks(has_node=has_job)]
        case _:
            raise UsageError(
                f"This version does not examine {profile.executor} profiles yet: local, docker and slurm ones it does."
            )


def _suite_findings(suite: CompiledJob | LauncherError, job: Job | None) -> Iterator[Finding]:
    if isinstance(suite, LauncherError):
        raise suite
    assert job is not None
    names = ", ".join(task["name"] for task in job.plan["tasks"])
    yield ok(f"{names} for {job.plan['model']['id']}, to {job.output_dir}")
