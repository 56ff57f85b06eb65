"""`nel cache-sqsh`: images as .sqsh files in a folder of a cluster. A program of its own, which `nel` starts."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import FrameType
from typing import NoReturn

import click

from nemotron.cli.errors import run
from nemotron.errors import LauncherError, UsageError
from nemotron.images.cache import How, cache
from nemotron.images.makers import Method, Mode
from nemotron.images.shelf import stock
from nemotron.images.shelf.names import given_link, variant_link
from nemotron.images.shelf.place import expanded
from nemotron.images.shelf.shelf import Shelf
from nemotron.images.variants import image_of
from nemotron.transport.base import Session
from nemotron.transport.reach import session_for

PROGRAM, MODULE = "nel cache-sqsh", "nemotron.cli.sqsh"
LOCAL = "local"
IN_SRUN = "NEMOTRON_CACHE_SQSH_IN_SRUN"
"""Set in the step that --mode srun starts, where the work is done."""


@dataclass(frozen=True, slots=True)
class LoginNode:
    """HOST as it is written: `local`, NAME or USER@NAME."""

    host: str | None
    user: str | None = None
    port: int | None = None
    identity: str | None = None

    @classmethod
    def of(cls, text: str) -> "LoginNode":
        if text == LOCAL:
            return cls(None)
        user, at, host = text.rpartition("@")
        return cls(host, user if at else None)

    @property
    def is_here(self) -> bool:
        return self.host is None


host_argument = click.argument("host")
folder_argument = click.argument("output_path")


@click.command(
    epilog="`nel cache-sqsh list|verify|prune HOST OUTPUT_PATH` looks after the folder; each has a --help of its own."
)
@click.argument("target")
@host_argument
@folder_argument
@click.option("--registry", "-r", help="Of a variant: another registry, with its folders.")
@click.option("--tag", "-t", help="Of a variant: another tag.")
@click.option("--filename", "-f", help="Name of a further link to the image.")
@click.option(
    "--method",
    type=click.Choice(["enroot", "native"]),
    help="enroot imports on HOST; native builds on this machine, and uploads. Default: native for "
    "`local`, enroot for a HOST that has it.",
)
@click.option(
    "--mode",
    type=click.Choice(["login", "srun"]),
    default="login",
    show_default=True,
    help="Where on HOST. srun takes SLURM_ACCOUNT, _PARTITION, _QOS and _TIMELIMIT from this environment.",
)
@click.option("--force", is_flag=True, help="Make it anew though it is there.")
def make(
    target: str,
    host: str,
    output_path: str,
    registry: str | None,
    tag: str | None,
    filename: str | None,
    method: Method | None,
    mode: Mode,
    force: bool,
) -> None:
    """Have the image TARGET as a .sqsh file in the folder OUTPUT_PATH of HOST.

    TARGET is a variant of containers/images.toml, or any image as docker, enroot or a registry spells it. HOST is a
    login node as ssh knows it, or `local`. The file is named by its digest, with a readable link beside it.
    """
    image, variant = image_of(target, registry, tag)
    given = [given_link(filename)] if filename else []
    session = session_for(LoginNode.of(host), os.environ)
    if mode == "srun" and session.is_here and method != "enroot" and IN_SRUN not in os.environ:
        sys.exit(_again_in_srun())
    shelf = Shelf(session, expanded(session, output_path))

    def links(platform: str) -> Sequence[str]:
        return given + ([variant_link(variant, platform)] if variant else [])

    path = cache(shelf, image, os.environ, How(method, mode, force, links), _say)
    click.echo(f"image: {path}")


@click.command(name="list", help="Show the images in OUTPUT_PATH, last used first.")
@host_argument
@folder_argument
def list_images(host: str, output_path: str) -> None:
    for item in stock.items(_shelf(host, output_path)):
        used = datetime.fromtimestamp(item.used, UTC).strftime("%Y-%m-%d")
        image = item.record.reference if item.record else "?"
        click.echo(f"{item.name}  {item.size / 1e9:8.2f} GB  {used}  {image}")
        for link in item.links:
            click.echo(f"    {link}")


@click.command(help="Read every image in OUTPUT_PATH and compare it with what was written.")
@host_argument
@folder_argument
def verify(host: str, output_path: str) -> None:
    shelf = _shelf(host, output_path)
    damaged = 0
    for item in stock.items(shelf):
        fault = stock.faults(shelf, item)
        damaged += bool(fault)
        click.echo(f"{item.name}  {fault or 'ok'}")
    if damaged:
        raise LauncherError(f"{damaged} damaged images: make them anew with --force, or remove them.")


@click.command(help="Remove images that were not used lately; what is being made stays.")
@host_argument
@folder_argument
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Spare the N that were used last.")
@click.option("--older-than", type=click.FloatRange(0), metavar="DAYS", help="Spare what was used since then.")
def prune(host: str, output_path: str, keep: int | None, older_than: float | None) -> None:
    if keep is None and older_than is None:
        raise UsageError("prune removes nothing without --keep N or --older-than DAYS: say what may go.")
    gone = stock.prune(_shelf(host, output_path), keep, older_than)
    for item in gone:
        click.echo(f"{item.name}  {item.record.reference if item.record else '?'}")
    click.echo(f"removed {len(gone)} images, {sum(item.size for item in gone) / 1e9:.2f} GB", err=True)


ACTIONS = {"list": list_images, "verify": verify, "prune": prune}


def main(arguments: Sequence[str]) -> NoReturn:
    """An image called like an action has its registry before its name."""
    action = ACTIONS.get(arguments[0]) if arguments else None
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    if action:
        run(action, f"{PROGRAM} {arguments[0]}", arguments[1:])
    run(make, PROGRAM, arguments)


def _shelf(host: str, output_path: str) -> Shelf:
    session: Session = session_for(LoginNode.of(host), os.environ)
    return Shelf(session, expanded(session, output_path))


def _again_in_srun() -> int:
    """This very command as a step of a job."""
    command = ["srun", "--ntasks=1", "--job-name=cache-sqsh", sys.executable, "-m", MODULE, *sys.argv[1:]]
    try:
        return subprocess.run(command, env=os.environ | {IN_SRUN: "1"}).returncode
    except FileNotFoundError:
        raise UsageError("--mode srun needs srun on PATH: use --mode login, or name a login node as HOST.") from None


def _say(line: str) -> None:
    click.echo(line, err=True)


def _stop(number: int, frame: FrameType | None) -> None:
    """So that what was begun is taken away."""
    sys.exit(128 + number)


if __name__ == "__main__":
    main(sys.argv[1:])
