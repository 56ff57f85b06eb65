"""How a container is started on a node: what is to run in it -> command lines of the tool that is there. Pure.

No variable is given on a command line: the job's come through standard input (executors/container_start.py) and win
over the image's, whose PATH stays. Only named folders are mounted, never the home folder: packages and settings in it
would shadow the image's. The image's entry point is left out, and files belong to whoever submitted.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from nemotron.errors import UsageError
from nemotron.images.reference import Reference, spelled
from nemotron.job import Mount
from nemotron.profiles import READS_SQUASH, Runtime

RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)
SCRATCH = "/tmp"
"""Working folder and home in a container: there in every image."""
SEPARATORS = {"pyxis": ":,", "enroot": ":,", "apptainer": ":,", "podman": ":,", "docker": ":,", "none": ""}
TAKES_NO_SPACES: tuple[Runtime, ...] = ("pyxis", "enroot")
"""They write mounts as lines of an fstab."""


@dataclass(frozen=True, slots=True)
class Container:
    name: str
    """Unique on its node."""
    image: Reference | Path | None
    """None where no container is started."""
    command: tuple[str, ...]
    """Begins with an interpreter."""
    mounts: tuple[Mount, ...] = ()
    cpus: int | None = None
    owner: tuple[int, int] = (0, 0)
    """User and group that submitted, by number."""
    entry: str = ""
    """A file on the node that runs its arguments, for tools that cannot leave the image's entry point out."""


@dataclass(frozen=True, slots=True)
class Commands:
    """No shell reads them."""

    run: tuple[str, ...]
    """Has the container's standard streams; signals and exit codes go through it."""
    prepare: tuple[tuple[str, ...], ...] = ()
    clean_up: tuple[tuple[str, ...], ...] = ()


def commands(runtime: Runtime, container: Container) -> Commands:
    """Raises UsageError for what the tool would misread."""
    check_mounts(runtime, container.mounts)
    if runtime == "none":
        return Commands(container.command)
    image = container.image
    if image is None:
        raise UsageError("A container needs an image: set EVAL_HARNESS_IMAGE, or harness_image=REGISTRY/NAME:TAG.")
    if isinstance(image, Path) and runtime not in READS_SQUASH:
        raise UsageError(
            f"container_runtime {runtime!r} runs images of registries, not the file {image}: "
            f"use one of {', '.join(READS_SQUASH)}, or name the image by REGISTRY/NAME:TAG."
        )
    match runtime:
        case "pyxis":
            return _pyxis(container, spelled(image, "pyxis"))
        case "enroot":
            return _enroot(container, image)
        case "apptainer":
            return _apptainer(container, spelled(image, "apptainer"))
        case "podman":
            return _podman(container, spelled(image, "podman"))
        case "docker":
            return _docker(container, spelled(image, "docker"))


def check_mounts(runtime: Runtime, mounts: Iterable[Mount]) -> None:
    targets: dict[str, str] = {}
    for mount in mounts:
        for path in (mount.source, mount.target):
            _check_path(runtime, path)
        other = targets.setdefault(mount.target.rstrip("/"), mount.source)
        if other != mount.source:
            raise UsageError(f"mounts: {other} and {mount.source} would both be {mount.target}: leave one of them out.")


def _check_path(runtime: Runtime, path: str) -> None:
    if not path.startswith("/") or ".." in Path(path).parts:
        raise UsageError(f"mounts: {path!r} is no absolute path: write it from / on, without `..`.")
    spaces = " \t" if runtime in TAKES_NO_SPACES else ""
    if found := sorted(set(path) & set(SEPARATORS[runtime] + spaces + "\n\r\0")):
        raise UsageError(
            f"{path!r} has {found[0]!r}, which {runtime} takes for a separator: rename or link the folder."
        )


def _pyxis(container: Container, image: str) -> Commands:
    """`--export=NONE` is the step's environment; the image brings its own."""
    mounts = ",".join(
        f"{mount.source}:{mount.target}:{'ro' if mount.is_read_only else 'rw'}" for mount in container.mounts
    )
    cpus = [f"--cpus-per-task={container.cpus}"] if container.cpus else []
    options = [
        "--nodes=1",
        "--ntasks=1",
        *cpus,
        "--export=NONE",
        "--unbuffered",
        f"--container-image={image}",
        f"--container-mounts={mounts}",
        f"--container-workdir={SCRATCH}",
        "--container-writable",
        "--no-container-mount-home",
        "--no-container-remap-root",
        "--no-container-entrypoint",
    ]
    return Commands(("srun", *options, *container.command))


def _enroot(container: Container, image: Reference | Path) -> Commands:
    """From a .sqsh, which is imported first where there is none."""
    squash = str(image) if isinstance(image, Path) else f"{Path(container.entry).parent}/image.sqsh"
    imports = [] if isinstance(image, Path) else [("enroot", "import", f"--output={squash}", spelled(image, "enroot"))]
    mounts = [
        f"--mount={mount.source}:{mount.target}:x-create=auto,rbind,{'ro' if mount.is_read_only else 'rw'}"
        for mount in container.mounts
    ]
    start = ("env", "ENROOT_MOUNT_HOME=no", "enroot", "start", "--rw", f"--rc={container.entry}", *mounts)
    forget = [] if isinstance(image, Path) else [("rm", "-f", squash)]
    return Commands(
        run=(*start, container.name, *container.command),
        prepare=(*imports, ("enroot", "create", f"--name={container.name}", squash)),
        clean_up=(("enroot", "remove", "--force", container.name), *forget),
    )


def _apptainer(container: Container, image: str) -> Commands:
    """`exec` leaves the image's script out. Neither home nor the working folder is brought along by itself."""
    binds = [
        f"--bind={mount.source}:{mount.target}:{'ro' if mount.is_read_only else 'rw'}" for mount in container.mounts
    ]
    options = ("--cleanenv", "--no-home", "--no-mount=home,cwd", "--writable-tmpfs", f"--pwd={SCRATCH}", *binds)
    return Commands(("apptainer", "exec", *options, image, *container.command))


def _podman(container: Container, image: str) -> Commands:
    """Without root, podman maps users: keep-id makes the submitter the owner of results there."""
    user = ("--user=0:0",) if container.owner[0] == 0 else ("--userns=keep-id",)
    return _engine("podman", container, image, user, clean_up=("podman", "rm", "--force", "--ignore", container.name))


def _docker(container: Container, image: str) -> Commands:
    user = (f"--user={container.owner[0]}:{container.owner[1]}",)
    return _engine("docker", container, image, user, clean_up=("docker", "rm", "--force", container.name))


def _engine(tool: str, container: Container, image: str, user: tuple[str, ...], clean_up: tuple[str, ...]) -> Commands:
    volumes = [
        f"--volume={mount.source}:{mount.target}:{'ro' if mount.is_read_only else 'rw'}" for mount in container.mounts
    ]
    python, *arguments = container.command
    options = ("--rm", "--interactive", f"--name={container.name}", "--network=host", *user, f"--workdir={SCRATCH}")
    run = (tool, "run", *options, *volumes, f"--entrypoint={python}", image, *arguments)
    return Commands(run, clean_up=(clean_up,))
