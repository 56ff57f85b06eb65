"""`nel cache-sqsh` as a user types it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes import enroot
from tests.fakes.registry import FakeRegistry, layer
from tests.launcher.transport.ssh_world import SshWorld

SECONDS = 180
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def registry():
    with FakeRegistry() as registry:
        registry.push("team/harness", "1.0", [layer({"x": "1"})])
        yield registry


@pytest.fixture
def nel(tmp_path, registry):
    """With a fake enroot, which makes no demands on the machine."""
    path = f"{enroot.install(tmp_path / 'bin')}:{os.environ['PATH']}"
    environ = {"PATH": path, "HOME": str(tmp_path), "FAKE_ENROOT_LOG": str(tmp_path / "enroot.log")}

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "nemo_evaluator.cli.main", "cache-sqsh", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=environ | more, capture_output=True, text=True, timeout=SECONDS
        )

    return run


def test_prints_the_path_of_the_image_and_nothing_else(nel, registry, tmp_path):
    done = nel("-f", "mine", f"{registry.host}/team/harness:1.0", "local", "~/images", "--method", "enroot")
    assert (done.returncode, done.stdout.count("\n")) == (0, 1), done.stderr
    path = Path(done.stdout.removeprefix("image: ").strip())
    assert path.parent == tmp_path / "images" and path.is_file()
    assert (tmp_path / "images/mine.sqsh").resolve() == path


def test_a_variant_has_a_link_by_its_name(nel, registry, tmp_path):
    registry.push("team/lm-evaluation-harness", "mine", [layer({"x": "1"})])
    words = ("-r", f"{registry.host}/team", "-t", "mine", "--method", "enroot")
    assert nel("lm-evaluation-harness", "local", str(tmp_path / "a"), *words).returncode == 0
    assert (tmp_path / "a/nel-lm-evaluation-harness.sqsh").is_file()


def test_the_folder_is_looked_after(nel, registry, tmp_path):
    image, folder = f"{registry.host}/team/harness:1.0", str(tmp_path / "images")
    nel(image, "local", folder, "--method", "enroot")
    shown = nel("list", "local", folder).stdout
    assert image in shown and "team-harness-1.0.sqsh" in shown
    assert nel("verify", "local", folder).stdout.endswith("ok\n")
    (path,) = (tmp_path / "images").glob("sha256-" + "?" * 64 + ".sqsh")
    path.write_bytes(b"x")
    done = nel("verify", "local", folder)
    assert done.returncode == 1 and "is no squashfs" in done.stdout and done.stderr.count("\n") == 1
    assert nel("prune", "local", folder, "--keep", "0").stdout.startswith(path.name)
    assert not list((tmp_path / "images").iterdir())


def test_another_machine_is_reached_by_its_name_and_no_folder_is_a_command_there(nel, registry, tmp_path, mksquashfs):
    world = SshWorld(tmp_path)
    try:
        node = world.server("login")
        folder = tmp_path / "it's $(touch oops); there"
        done = nel(f"{registry.host}/team/harness:1.0", "login", str(folder))
        assert done.returncode == 0 and node.commands, done.stderr
        assert len(list(folder.glob("sha256-*.sqsh"))) == 2  # the image, and the link by its index
        assert f"image: {folder}/sha256-" in done.stdout and not list(tmp_path.rglob("oops"))
    finally:
        world.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["base", "local", "out"], "Unknown variant 'base'"),
        (["Host/UP", "local", "out"], "image 'Host/UP'"),
        (["host/a:1", "local", "out", "-t", "x"], "--tag 'x' goes with a variant"),
        (["host/a:1", "local", "out", "-f", "a/b"], "--filename 'a/b' is no plain file name"),
        (["host/a:1", "local", "$NOWHERE/out"], "$NOWHERE is not set on this machine"),
        (["host/a:1", "a b", "/out"], "'a b' is no host"),
        (["prune", "local", "out"], "say what may go"),
        (["prune", "local", "out", "--keep", "few"], "see `nel cache-sqsh prune --help`"),
        (["host/a:1"], "'HOST'; see `nel cache-sqsh --help`"),
        (["list", "local", "nowhere"], "is no folder on this machine"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_code_2(nel, words, said, tmp_path):
    done = nel(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr and done.stderr.startswith("Error: ") and done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_registry_that_does_not_answer_is_exit_code_1(nel, tmp_path):
    done = nel("127.0.0.1:9/a:1", "local", "out")
    assert done.returncode == 1 and "cannot be reached" in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_machine_without_srun_says_so(nel, tmp_path):
    done = nel("host/a:1", "local", "out", "--mode", "srun", PATH=str(tmp_path))
    assert done.returncode == 2 and "--mode srun needs srun on PATH" in done.stderr


def test_native_on_this_machine_can_be_a_step_of_a_job(nel, registry, tmp_path, mksquashfs):
    """The whole command runs there, once."""
    srun = tmp_path / "bin/srun"
    srun.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/srun.log\nshift 2\nexec "$@"\n')
    done = nel(
        f"{registry.host}/team/harness:1.0", "local", "out", "--mode", "srun", PATH=f"{tmp_path}/bin:/usr/bin:/bin"
    )
    line = (tmp_path / "srun.log").read_text()
    assert line.startswith("--ntasks=1 --job-name=cache-sqsh ") and line.count("\n") == 1
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "out").glob("sha256-*.sqsh"))


def test_help_is_that_of_the_command_itself(nel):
    done = nel("--help")
    assert done.returncode == 0 and done.stdout.startswith("Usage: nel cache-sqsh [OPTIONS] TARGET HOST OUTPUT_PATH")
    assert nel("list", "--help").stdout.startswith("Usage: nel cache-sqsh list [OPTIONS] HOST OUTPUT_PATH")
