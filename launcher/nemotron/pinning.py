"""An image by tag becomes an image by digest, so that what ran can be run again."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from nemotron.images.manifests import RegistryUnreachable
from nemotron.images.reference import Reference, parse_image
from nemotron.images.registry import Registry, RegistrySettings, Resolved
from nemotron.job import Job


def pinned(job: Job, environ: Mapping[str, str], warn: Callable[[str], None]) -> Job:
    """The same job where the registry does not answer, with a warning: its results will say that nothing was pinned."""
    image = parse_image(job.image or "", Path.cwd())
    if not isinstance(image, Reference) or image.is_pinned:
        return job
    try:
        with Registry(RegistrySettings.of(environ)) as registry:
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
