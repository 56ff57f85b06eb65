"""What others are asked before jobs start: the registry for a digest, cluster and endpoint whether they will do."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from nemotron.errors import LauncherError, UsageError
from nemotron.executors.demands import objected
from nemotron.images.manifests import RegistryUnreachable
from nemotron.images.reference import Reference, parse_image
from nemotron.images.registry import Registry, RegistrySettings, Resolved
from nemotron.job import Job
from nemotron.preflight import Finding, check_image, preflight
from nemotron.profiles import SlurmProfile
from nemotron.request import CompiledJob
from nemotron.slurm.demand import Objection

Warn = Callable[[str], None]

SIDE_BY_SIDE = 8
"""Endpoints of a sweep that are asked at a time; one that is down takes its time to be found so."""


class Refused(UsageError):
    """What was found would fail the job."""


def made_ready(compiled: CompiledJob, warn: Warn) -> CompiledJob:
    """Raises UsageError, a line a finding, for what would fail in the job."""
    (ready,) = all_made_ready([compiled], warn)
    if isinstance(ready, Refused):
        raise UsageError(f"{ready}\nNothing was submitted; preflight=false submits all the same.")
    if isinstance(ready, LauncherError):
        raise ready
    return ready


def all_made_ready(jobs: Sequence[CompiledJob], warn: Warn) -> list[CompiledJob | LauncherError]:
    """In the same order; a job that would fail has its refusal in its place. An image is asked for once."""
    if not jobs:
        return []
    with Registry(RegistrySettings.of(jobs[0].environ)) as registry:
        images = Images(registry, warn)
        ready = [_or_refusal(images.pinned, job) for job in jobs]
        looked_at = [job for job in ready if isinstance(job, CompiledJob) and _is_looked_at(job)]
        found = {id(job): images.findings(job) for job in looked_at}
    for job, objections in _objections(looked_at):
        found[id(job)] += [_finding(objection) for objection in objections]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for job, findings in zip(looked_at, pool.map(_look_ahead, looked_at), strict=True):
            found[id(job)] += findings
    notes = [str(finding) for findings in found.values() for finding in findings if finding.severity == "note"]
    for note in dict.fromkeys(notes):
        warn(note)
    return [_refused(found.get(id(job), ())) or job for job in ready]


class Images:
    """What the registry says of the images of several jobs, which most often share one."""

    def __init__(self, registry: Registry, warn: Warn) -> None:
        self._registry, self._warn = registry, warn
        self._resolved: dict[str, Resolved | None] = {}
        self._findings: dict[tuple[str, ...], list[Finding]] = {}

    def pinned(self, compiled: CompiledJob) -> CompiledJob:
        """By digest, so that what ran can be run again; where the registry is out of reach, by tag with a warning."""
        name = compiled.job.image
        image = parse_image(name, Path.cwd()) if name is not None else None
        if name is None or not isinstance(image, Reference) or image.is_pinned:
            return compiled
        if name not in self._resolved:
            self._resolved[name] = self._resolve(image, name)
        resolved = self._resolved[name]
        return replace(compiled, job=_with(compiled.job, resolved)) if resolved else compiled

    def findings(self, compiled: CompiledJob) -> list[Finding]:
        plan = compiled.job.plan
        asked = (str(compiled.job.image), plan["model"]["endpoint_type"], *(task["name"] for task in plan["tasks"]))
        if asked not in self._findings:
            self._findings[asked] = list(check_image(plan, self._registry))
        return list(self._findings[asked])

    def _resolve(self, image: Reference, name: str) -> Resolved | None:
        try:
            return self._registry.resolve(image)
        except RegistryUnreachable as error:
            self._warn(f"{error} The job runs {name} by its tag, and its numbers cannot be cited.")
            return None


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


def _or_refusal(make: Callable[[CompiledJob], CompiledJob], job: CompiledJob) -> CompiledJob | LauncherError:
    try:
        return make(job)
    except LauncherError as error:
        return error


def _is_looked_at(compiled: CompiledJob) -> bool:
    return bool(compiled.job.plan["preflight"]) and not compiled.job.plan["dry_run"]


def _objections(jobs: Sequence[CompiledJob]) -> Iterator[tuple[CompiledJob, list[Objection]]]:
    """Of the cluster."""
    profiles = {id(job): job.profile for job in jobs if isinstance(job.profile, SlurmProfile)}
    if profiles:
        asked = [job for job in jobs if id(job) in profiles]
        yield from zip(asked, objected(list(profiles.values()), asked[0].environ), strict=True)


def _finding(objection: Objection) -> Finding:
    why = "Slurm would refuse the job, or never start it" if objection.is_certain else "Slurm may never start the job"
    return Finding(objection.what.rstrip("."), why, objection.action, "stop" if objection.is_certain else "note")


def _look_ahead(compiled: CompiledJob) -> list[Finding]:
    return preflight(compiled.job.plan, compiled.environ, is_remote=compiled.profile.is_remote)


def _refused(findings: Sequence[Finding]) -> Refused | None:
    stops = [str(finding) for finding in findings if finding.severity == "stop"]
    return Refused("\n".join(stops)) if stops else None
