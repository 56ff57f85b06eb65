"""Suite + profile + environment -> a job that evaluates."""

import hashlib
import re
from collections.abc import Mapping

from nemotron.config import compose_suite
from nemotron.errors import UsageError
from nemotron.images.reference import parse_image
from nemotron.job import Job
from nemotron.plan import Place, Planned, build_plan
from nemotron.profiles import Profile, SlurmProfile
from nemotron.request import CompiledJob, Request
from nemotron.runner import build_runner
from nemotron.secrets import is_secret, is_variable_name
from nemotron.source import running_code
from nemotron.suite import Suite, parse_suite

NAME_LENGTH = 35
IN_CONTAINERS = {"PYTHONNOUSERSITE": "1"}
"""A home that is mounted after all must not shadow the image's packages."""


def compile_step(request: Request) -> CompiledJob:
    suite, environ = _resolve(request)
    profile = request.profile.with_settings(suite.run.env.profile_keys)
    _check_squash(request, profile)
    env_vars = _env_vars(request, suite)
    place = _place(request, profile, env_vars, {**environ, **env_vars})
    planned = build_plan(suite, place, code=running_code(), created=request.now.isoformat(timespec="seconds"))
    _check_image(planned, request)
    _check_platform_secrets(planned, profile, request.profile.place)
    return CompiledJob(_job(request, planned, profile, env_vars), profile, {**place.environ, **planned.revealed})


def _resolve(request: Request) -> tuple[Suite, Mapping[str, str]]:
    environ = {**request.environ, **request.profile.env_vars}
    composed = compose_suite(request.config, request.overrides, environ)
    if request.tasks:
        composed["task_filters"] = list(request.tasks)
    return parse_suite(composed, request.config), environ


def _check_squash(request: Request, profile: Profile) -> None:
    if request.rebuilds_squash and not (isinstance(profile, SlurmProfile) and profile.uses_squash):
        raise UsageError(
            f"--force-squash: {request.profile.place} uses no .sqsh: leave it out, or give a Slurm profile "
            "image_cache_dir and one of the container runtimes pyxis, enroot and apptainer."
        )


def _env_vars(request: Request, suite: Suite) -> dict[str, str]:
    """The profile's, and the suite's over them; null takes one away, empty counts as unset."""
    merged = {**request.profile.env_vars, **suite.run.env.env_vars}
    for name in merged:
        if not is_variable_name(name):
            raise UsageError(f"run.env.env_vars: {name!r} is no name of a variable: use letters, digits and _.")
    return {name: value for name, value in merged.items() if value}


def _place(request: Request, profile: Profile, env_vars: Mapping[str, str], environ: Mapping[str, str]) -> Place:
    return Place(
        environ=environ,
        folder=request.folder,
        is_remote=profile.is_remote,
        runs_images=profile.runs_images,
        env_vars=env_vars,
        forwarded_secrets=profile.forwarded_secrets,
        platform_secrets=tuple(profile.platform_secrets),
    )


def _check_image(planned: Planned, request: Request) -> None:
    """Raises UsageError for what no tool would read."""
    if (image := planned.plan["harness"]["image"]) is not None:
        parse_image(image, request.folder)


def _check_platform_secrets(planned: Planned, profile: Profile, place: str) -> None:
    exposed = [name for name in planned.plan["secrets"] if name not in profile.platform_secrets]
    if exposed and not profile.allows_plaintext_secrets:
        raise UsageError(
            f"{place}: {', '.join(exposed)} would be readable in the job's definition: name the platform's secret "
            f'(secret_vars = {{ {exposed[0]} = "<secret>" }}), or set allow_plaintext_secrets = true.'
        )


def _job(request: Request, planned: Planned, profile: Profile, env_vars: Mapping[str, str]) -> Job:
    plan = planned.plan
    public = {name: value for name, value in env_vars.items() if not is_secret(name, value)}
    return Job(
        name=job_name(request.config, plan["model"]["id"]),
        plan=plan,
        output_dir=plan["output_dir"],
        runner=build_runner(),
        image=plan["harness"]["image"],
        env={**(IN_CONTAINERS if profile.runs_images else {}), **public},
        secrets=tuple(plan["secrets"]),
        resources=profile.resources,
        mounts=profile.job_mounts,
        rebuilds_squash=request.rebuilds_squash,
    )


def job_name(config: str, model_id: str) -> str:
    """`eval-base-en-llama-3-8b`; what had to be shortened keeps a hash, so that two long names stay two."""
    words = f"eval-{config.removesuffix('.yaml').rpartition('/')[2]}-{model_id.rpartition('/')[2]}"
    name = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
    if len(name) <= NAME_LENGTH:
        return name
    digest = hashlib.sha256(words.encode()).hexdigest()[:6]
    return f"{name[: NAME_LENGTH - 7].rstrip('-')}-{digest}"
