"""`nel cache-sqsh` on the testbed: the harness image of its registry, against podman's own view of it."""

import errno
import hashlib
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import _testbed
from tests.e2e.slurm_world import Slurm, wait_until
from tests.launcher.images.sqsh.tars import file, folder, tar

pytestmark = pytest.mark.timeout(900)
SECONDS = 600
OURS = {"etc/environment", "etc/fstab", "etc/rc", "etc/rc.local"}
Look = tuple[int, int, str, int, tuple[tuple[str, bytes], ...]]


def nel(home: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nemo_evaluator.cli.main", "cache-sqsh", *words],
        env={"PATH": os.environ["PATH"], "HOME": str(home), **environ},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


@pytest.fixture(scope="module")
def engine() -> dict[str, str]:
    """Environment in which podman is the testbed's."""
    state = Path(_testbed("NEL_TEST_ENGINE", "podman").removeprefix("unix://")).parent
    files = {
        "CONTAINERS_CONF": "containers",
        "CONTAINERS_STORAGE_CONF": "storage",
        "CONTAINERS_REGISTRIES_CONF": "registries",
    }
    return {"PATH": os.environ["PATH"], **{name: f"{state}/{file}.conf" for name, file in files.items()}}


@pytest.fixture(scope="module")
def image(tmp_path_factory, harness_image: str) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("sqsh")
    done = nel(home, harness_image, "local", "~/images", "--method", "native")
    assert done.returncode == 0, done.stderr
    yield (path := Path(done.stdout.removeprefix("image: ").strip()))
    path.unlink()  # a gigabyte


@pytest.fixture(scope="module")
def mounted(image: Path, tmp_path_factory) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    place = tmp_path_factory.mktemp("mounted")
    subprocess.run(["mount", "-t", "squashfs", "-o", "loop,ro", image, place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


def test_the_tree_is_the_one_that_podman_shows(mounted: Path, harness_image: str, engine: dict[str, str]):
    subprocess.run(["podman", "pull", "-q", harness_image], env=engine, check=True, capture_output=True)
    shown = subprocess.run(
        ["podman", "image", "mount", harness_image], env=engine, check=True, capture_output=True, text=True
    )
    try:
        ours, podmans = view(mounted), view(Path(shown.stdout.strip()))
    finally:
        subprocess.run(["podman", "image", "unmount", harness_image], env=engine, check=True, capture_output=True)
    assert len(ours) > 10_000
    assert {path for path in ours.keys() | podmans.keys() if ours.get(path) != podmans.get(path)} <= OURS
    assert ours.keys() - podmans.keys() <= OURS and ours.keys() >= OURS
    assert all(path.lstat().st_uid == path.lstat().st_gid == 0 for path in (mounted / "opt").rglob("*"))


def view(root: Path) -> dict[str, Look]:
    """Path -> mode with type, size, target or content's hash, whole seconds of its time, attributes.

    Not the root itself, whose mode podman makes up.
    """
    seen: dict[str, Look] = {}
    for parent, folders, files in os.walk(root):
        for name in folders + files:
            path = Path(parent) / name
            seen[str(path.relative_to(root))] = look(path)
    return seen


def look(path: Path) -> Look:
    found = path.lstat()
    is_link, is_file = stat.S_ISLNK(found.st_mode), stat.S_ISREG(found.st_mode)
    content = str(path.readlink()) if is_link else hashlib.sha256(path.read_bytes()).hexdigest() if is_file else ""
    mode = stat.S_IFLNK if is_link else found.st_mode
    size = found.st_size if is_link or is_file else found.st_rdev
    return mode, size, content, int(found.st_mtime), () if is_link else attributes(path)


def attributes(path: Path) -> tuple[tuple[str, bytes], ...]:
    """None where the whole file system has none."""
    try:
        return tuple((name, os.getxattr(path, name)) for name in sorted(os.listxattr(path)))
    except OSError as error:
        assert error.errno == errno.ENOTSUP
        return ()


def test_it_runs_as_enroot_would_start_it(mounted: Path, engine: dict[str, str]):
    command = ["podman", "run", "--rm", "--network=none", f"--env-file={mounted}/etc/environment"]
    command += ["--rootfs", f"{mounted}:O", "/bin/sh", "/etc/rc"]
    done = subprocess.run(command, env=engine, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0 and "gsm8k" in done.stdout, done.stderr


@pytest.fixture(scope="module")
def small_image(engine: dict[str, str]) -> str:
    name = f"{_testbed('NEL_TEST_REGISTRY', 'registry')}/public/small:1"
    content = tar([folder("bin"), file("bin/sh", os.urandom(1000), 0o755)])
    subprocess.run(["podman", "import", "-", name], env=engine, input=content, check=True, capture_output=True)
    subprocess.run(["podman", "push", "-q", name], env=engine, check=True, capture_output=True)
    return name


def test_arrives_on_a_login_node_behind_a_jump_host(tmp_path: Path, small_image: str, ssh_config: Path):
    place, environ = str(tmp_path / "images"), {"NEMOTRON_SSH_CONFIG": str(ssh_config)}
    done = nel(tmp_path, small_image, "testbed-behind", place, "--method", "native", **environ)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.removeprefix("image: ").strip()).stat().st_mode & 0o777 == 0o644
    assert nel(tmp_path, "verify", "testbed-behind", place, **environ).stdout.endswith("ok\n")


def test_is_built_on_a_compute_node_where_login_nodes_are_small(
    tmp_path: Path, small_image: str, slurm: dict[str, str]
):
    environ = slurm | {"SLURM_ACCOUNT": "eval", "SLURM_PARTITION": "cpu"}
    done = nel(tmp_path, small_image, "local", str(tmp_path / "images"), "--mode", "srun", **environ)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.removeprefix("image: ").strip()).is_file()
    jobs = ["sacct", "-nXP", "-S", "now-1hour", "-o", "JobName,State"]
    cluster = Slurm(slurm)
    wait_until(lambda: "cache-sqsh|COMPLETED" in cluster(*jobs), "the job in the accounting")
