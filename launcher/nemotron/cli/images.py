"""`nemotron images`: what a container image is and what it can run, with no container engine."""

import json
import os
import re
from dataclasses import asdict

import click

from nemotron.errors import UsageError
from nemotron.images.reference import parse
from nemotron.images.registry import PLATFORM, Registry, RegistrySettings, Resolved
from nemotron.images.tasks import Task, TaskList, read_tasks

PLATFORM_FORM = re.compile(r"[a-z0-9]+/[a-z0-9_]+(/[a-z0-9]+)?")


def _platform(context: click.Context, option: click.Parameter, value: str) -> str:
    if not PLATFORM_FORM.fullmatch(value):
        raise UsageError(f"--platform {value!r} is none: write OS/ARCHITECTURE[/VARIANT], such as {PLATFORM}.")
    return value


platform_option = click.option(
    "--platform", default=PLATFORM, show_default=True, callback=_platform, help="OS/ARCHITECTURE[/VARIANT]."
)
json_option = click.option("--json", "as_json", is_flag=True, help="For programs.")


@click.group(help="Look at container images in a registry.")
def images() -> None: ...


@images.command(help="Show which tasks IMAGE has, from its layers.")
@click.argument("image")
@platform_option
@click.option("--all-layers", is_flag=True, help="Also read the layers below the first one that has tasks.")
@json_option
def tasks(image: str, platform: str, all_layers: bool, as_json: bool) -> None:
    with Registry(RegistrySettings.of(os.environ)) as registry:
        resolved = registry.resolve(parse(image), platform)
        listed = read_tasks(registry, resolved.pinned, platform, whole=all_layers)
    if as_json:
        click.echo(json.dumps({"image": str(resolved.pinned), **_listing(listed)}, indent=2))
        return
    names = [_shown_name(task, listed) for task in listed.tasks]
    width = max(map(len, names), default=0)
    for name, task in zip(names, listed.tasks, strict=True):
        click.echo(f"{name:{width}}  {','.join(task.endpoint_types) or '-':16}  {_defaults(task)}".rstrip())
    click.echo(f"{len(listed.tasks)} tasks in {resolved.pinned}", err=True)
    if not listed.is_complete:
        click.echo(f"read {listed.layers_read} of {listed.layers_total} layers whole; --all-layers reads all", err=True)


@images.command(help="Show the digest that IMAGE stands for, as EVAL_HARNESS_IMAGE takes it.")
@click.argument("image")
@platform_option
@json_option
def digest(image: str, platform: str, as_json: bool) -> None:
    with Registry(RegistrySettings.of(os.environ)) as registry:
        resolved = registry.resolve(parse(image), platform)
    click.echo(json.dumps(_digests(resolved, platform), indent=2) if as_json else str(resolved.pinned))


def _listing(listed: TaskList) -> dict[str, object]:
    return {
        "is_complete": listed.is_complete,
        "layers": {"read": listed.layers_read, "total": listed.layers_total},
        "tasks": [asdict(task) for task in listed.tasks],
    }


def _shown_name(task: Task, listed: TaskList) -> str:
    """With its framework where the name alone means another's task."""
    return task.name if listed.find(task.name) is task else f"{task.framework}.{task.name}"


def _defaults(task: Task) -> str:
    """The params that say most about a number; --json has all."""
    shown = {name: task.defaults.get(name) for name in ("task", "limit_samples", "max_new_tokens")}
    shown |= {"num_fewshot": (task.defaults.get("extra") or {}).get("num_fewshot")}
    return " ".join(f"{name}={value}" for name, value in shown.items() if value is not None)


def _digests(resolved: Resolved, platform: str) -> dict[str, object]:
    return {
        "image": str(resolved.pinned),
        "requested": str(resolved.reference),
        "index_digest": resolved.index_digest,
        "platform": platform,
        "platform_digest": resolved.platform_digest,
        "size": resolved.size,
    }
