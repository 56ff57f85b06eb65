"""Step + config + profile -> job -> executor: the one place they meet."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, cast

from nemotron.catalog import Step
from nemotron.errors import LauncherError, SubmitError, UsageError
from nemotron.executors import executor_for, shown
from nemotron.files import write_bytes
from nemotron.jobs import Record, make_folder, remember
from nemotron.request import CompiledJob, GeneratedFile, Request, StepModule
from nemotron.secrets import redact, values_of


def compile_step(step: Step, request: Request) -> CompiledJob | GeneratedFile:
    """Everything that can be refused is refused here; nothing is created."""
    module = cast(StepModule, importlib.import_module(step.module))
    return module.compile_step(request)


def check_backend(compiled: CompiledJob) -> None:
    """Raises UsageError where there is no way to submit."""
    executor_for(compiled.profile, compiled.environ)


def ready(compiled: CompiledJob, warn: Callable[[str], None], *, is_attached: bool) -> CompiledJob:
    """What must be asked of others before a job starts; what `-d` leaves out.

    An attached job on this machine asks the endpoint itself, from here, in the next second.
    """
    if is_attached and compiled.job.image is None and not compiled.profile.is_remote:
        return compiled
    readiness = importlib.import_module("nemotron.readiness")  # httpx: a third of a second, which that job is spared
    return cast(CompiledJob, readiness.made_ready(compiled, warn))


def all_ready(jobs: Sequence[CompiledJob], warn: Callable[[str], None]) -> list[CompiledJob | LauncherError]:
    """Of several detached jobs, with the refusal of those that would fail in their place."""
    readiness = importlib.import_module("nemotron.readiness")
    return cast(list[CompiledJob | LauncherError], readiness.all_made_ready(jobs, warn))


def run_attached(compiled: CompiledJob) -> int:
    return executor_for(compiled.profile, compiled.environ).run(compiled.job)


def submit(compiled: CompiledJob, profile_name: str, now: datetime) -> Record:
    make_folder(compiled.environ)
    submission = executor_for(compiled.profile, compiled.environ).submit(compiled.job)
    try:
        return remember(compiled, submission, profile_name, now)
    except OSError as error:
        raise SubmitError(
            f"The job was submitted as {submission.backend} {submission.job_id}, but cannot be remembered "
            f"({error.strerror}): note the number, `nemotron jobs` will not know it."
        ) from None


def write(generated: GeneratedFile) -> None:
    if generated.path.exists() and not generated.replaces:
        raise UsageError(
            f"{generated.path} already exists: choose another output_path, or pass force=true to replace it."
        )
    write_bytes(generated.path, generated.text.encode())


def describe(compiled: CompiledJob) -> dict[str, Any]:
    """The job as `-d` shows it; values of secrets do not appear, wherever they may have got to."""
    job = compiled.job
    facts = {
        "name": job.name,
        "backend": compiled.profile.executor,
        "profile": compiled.profile.model_dump(mode="json", by_alias=True, exclude={"env_vars"}, exclude_none=True),
        "image": job.image,
        "output_dir": job.output_dir,
        "env": dict(job.env),
        "secrets": list(job.secrets),
        "resources": {key: value for key, value in asdict(job.resources).items() if value is not None},
        "mounts": [str(mount) for mount in job.mounts],
        "rebuilds_squash": job.rebuilds_squash,
        **shown(compiled.profile, job, compiled.environ),
        "plan": job.plan,
    }
    values = list(values_of(job.secrets, compiled.environ).values())
    return {key: _masked(item, values) for key, item in facts.items()}


def _masked(content: Any, values: list[str]) -> Any:
    if isinstance(content, str):
        return redact(content, values)
    if isinstance(content, Mapping):
        return {key: _masked(item, values) for key, item in content.items()}
    return [_masked(item, values) for item in content] if isinstance(content, list) else content
