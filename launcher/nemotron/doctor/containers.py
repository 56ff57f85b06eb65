"""The image, and what will start it."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from nemotron.doctor.facts import Facts
from nemotron.doctor.finding import Finding, fail, ok, warn
from nemotron.images.cache import platform_of
from nemotron.images.manifests import RegistryUnreachable
from nemotron.images.reference import Reference, spelled
from nemotron.images.registry import Registry, RegistrySettings, is_loopback
from nemotron.images.shelf.shelf import Shelf
from nemotron.profiles import SlurmProfile
from nemotron.transport.base import Session

HARNESS = "nemo-evaluator"


def tools(profile: SlurmProfile) -> list[str]:
    """Commands that must be there for a job to start."""
    if profile.container_runtime == "none":
        return [profile.python, harness_beside(profile.python)]
    return ["srun"] if profile.container_runtime == "pyxis" else [profile.container_runtime]


def harness_beside(python: str) -> str:
    return str(Path(python).with_name(HARNESS)) if "/" in python else HARNESS


def runtime_findings(profile: SlurmProfile, facts: Facts, *, is_node: bool) -> Iterator[Finding]:
    """A login node without a container tool is common, and does no harm."""
    runtime = profile.container_runtime
    if not is_node and runtime == "none":
        return
    missing = [name for name in tools(profile) if not facts.commands[name]]
    action = "load it in the site's way, or choose another container_runtime"
    if runtime == "pyxis" and not missing and not facts.has_pyxis:
        missing, action = (
            ["pyxis, a plugin of srun"],
            "ask the site for it, or choose another container_runtime",
        )
    if missing and is_node:
        if runtime == "none":
            action = "set python in the profile to that of the environment that has the harness"
        yield fail(f"{facts.host} has no {' and no '.join(missing)}", action, "runtime")
    elif missing:
        yield warn(f"{facts.host} has no {missing[0]}", "fine where the compute nodes have it", "runtime")
    else:
        yield ok(f"{facts.host} has {', '.join(facts.commands[name] for name in tools(profile))}")


def image_findings(
    image: Reference | Path, session: Session, cache_dir: str | None, facts: Facts, environ: Mapping[str, str]
) -> Iterator[Finding]:
    if isinstance(image, Path):
        yield _file_finding(image, facts)
        return
    shelf = Shelf(session, cache_dir) if cache_dir else None
    platform = platform_of(session)
    if shelf and image.digest and (name := shelf.find(image.digest, platform)):
        yield ok(f"{image} is on the shelf: {shelf.path(name)}")
        return
    with Registry(RegistrySettings.of(environ)) as registry:
        try:
            manifest = registry.manifest(image, platform)
        except RegistryUnreachable as error:
            action = "the job would run by its tag: pin the image by digest, or let this machine reach it"
            yield warn(str(error).rstrip("."), action, "registry")
            return
    yield ok(f"{image} is in the registry, {manifest.size / 1e6:,.0f} MB")
    if shelf and not shelf.find(manifest.digest, platform):
        yield warn(
            f"{image} is not in image_cache_dir yet", "the first job makes it there, which takes minutes", "cache"
        )


def registry_url(image: Reference, environ: Mapping[str, str]) -> str:
    """What a node is asked to reach."""
    plain = is_loopback(image.registry) or image.registry in RegistrySettings.of(environ).insecure
    return f"{'http' if plain else 'https'}://{image.registry}/v2/"


def engine_image(profile: SlurmProfile, image: Reference) -> list[str] | None:
    """What is asked to know whether an engine has the image already."""
    tool = profile.container_runtime
    return [tool, "image", "inspect", spelled(image, tool)] if tool in ("podman", "docker") else None


def pull_findings(image: Reference, url: str, facts: Facts) -> Iterator[Finding]:
    """On a node, which pulls the image by itself; that a registry wants a login is an answer."""
    reached = facts.urls[url]
    if facts.has_image:
        yield ok(f"{facts.host} has {image} already")
    elif reached.stage == "answer":
        yield ok(f"{facts.host} reaches {url}")
    else:
        what = f"{facts.host} cannot reach {url} ({reached.said}), and so not pull {image}"
        yield fail(what, "set image_cache_dir, and make the .sqsh there with `nel cache-sqsh`", "node-registry")


def _file_finding(image: Path, facts: Facts) -> Finding:
    flaw = facts.sources[str(image)]
    if flaw:
        return fail(
            f"{image} {flaw} on {facts.host}", "correct EVAL_HARNESS_IMAGE, or make it with `nel cache-sqsh`", "image"
        )
    return ok(f"{image} can be read on {facts.host}")
