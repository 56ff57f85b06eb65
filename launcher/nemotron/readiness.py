"""What others are asked before a job starts: the registry for its digest, the endpoint whether it will do."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from nemotron.errors import UsageError
from nemotron.images.manifests import RegistryUnreachable
from nemotron.images.reference import Reference, parse_image
from nemotron.images.registry import Registry, RegistrySettings, Resolved
from nemotron.job import Job
from nemotron.preflight import preflight

Warn = Callable[[str], None]


def made_ready(job: Job, environ: Mapping[str, str], warn: Warn, *, is_remote: bool) -> Job:
    """Raises UsageError, a line a finding, for what would fail in the job."""
    with Registry(RegistrySettings.of(environ)) as registry:
        ready = pinned(job, registry, warn)
        if ready.plan["preflight"] and not ready.plan["dry_run"]:
            _look_ahead(ready, environ, registry, warn, is_remote)
    return ready


def pinned(job: Job, registry: Registry, warn: Warn) -> Job:
    """By digest, so that what ran can be run again; where the registry does not answer, by tag and with a warning."""
    image = parse_image(job.image, Path.cwd()) if job.image is not None else None
    if not isinstance(image, Reference) or image.is_pinned:
        return job
    try:
        resolved = registry.resolve(image)
    except RegistryUnreachable as error:
        warn(f"{error} The job runs {job.image} by its tag, and its numbers cannot be cited.")
        return job
    return _with(job, resolved)


def _with(job: Job, resolved: Resolved) -> Job:
    image = str(resolved.pinned)
    harness = {
        "image": image,
        "requested_image": job.image,
        "image_pinned_by_digest": True,
        "index_digest": resolved.index_digest,
        "platform_digest": resolved.platform_digest,
    }
    return replace(job, image=image, plan={**job.plan, "harness": harness})


def _look_ahead(job: Job, environ: Mapping[str, str], registry: Registry, warn: Warn, is_remote: bool) -> None:
    findings = preflight(job.plan, environ, is_remote=is_remote, registry=registry)
    for finding in findings:
        if finding.severity == "note":
            warn(str(finding))
    if stops := [str(finding) for finding in findings if finding.severity == "stop"]:
        raise UsageError("\n".join([*stops, "Nothing was submitted; preflight=false submits all the same."]))
