"""Containers of Slurm jobs: what is mounted, which image is named how, and whose variables win."""

import json
import sys
from pathlib import Path

import pytest

from nemotron.errors import ProfileError, UsageError
from nemotron.images.cache import ensure
from nemotron.images.reference import parse
from nemotron.images.registry import INSECURE_REGISTRIES
from nemotron.job import Mount
from nemotron.profiles import parse_profile
from nemotron.runtimes import RUNTIMES, Container, check_mounts, commands
from nemotron.slurm.folder import STEP
from nemotron.transport.here import Here
from tests.fakes.registry import FakeRegistry
from tests.launcher.batch.node import ENDS_WHEN_TOLD
from tests.launcher.batch.test_step import SHOWS, environ_of

pytestmark = pytest.mark.timeout(600)

CONTAINERS = [runtime for runtime in RUNTIMES if runtime != "none"]
DIGEST = f"@sha256:{'8d' * 32}"


def words_of(runtime, reference) -> str:
    started = commands(runtime, Container("name", parse(reference), ("python3",), entry="/job/entry.sh"))
    return json.dumps([started.prepare, started.run])


@pytest.mark.parametrize("spelling", ["docker://nvcr.io/a/b", "nvcr.io#a/b", "nvcr.io/a/b"])
@pytest.mark.parametrize("version", [":1.0", DIGEST])
@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        ("pyxis", "nvcr.io#a/b"),
        ("enroot", "docker://nvcr.io#a/b"),
        ("apptainer", "docker://nvcr.io/a/b"),
        ("podman", "nvcr.io/a/b"),
        ("docker", "nvcr.io/a/b"),
    ],
)
def test_every_tool_gets_its_own_spelling(runtime, expected, version, spelling):
    words = json.loads(words_of(runtime, spelling + version))
    flat = [word for command in [*words[0], words[1]] for word in command]
    assert any(word.removeprefix("--container-image=") == expected + version for word in flat)


def test_a_file_is_named_by_its_whole_path():
    started = commands("pyxis", Container("name", Path("/images/a.sqsh"), ("python3",)))
    assert "--container-image=/images/a.sqsh" in started.run


@pytest.mark.parametrize("runtime", CONTAINERS)
@pytest.mark.parametrize("path", ["/a,b", "/a:b", "/a\nb"])
def test_what_a_tool_takes_for_a_separator_is_refused(runtime, path):
    with pytest.raises(UsageError, match="separator"):
        check_mounts(runtime, [Mount("/data", path)])


@pytest.mark.parametrize(("runtime", "reads_spaces"), [("pyxis", False), ("enroot", False), ("podman", True)])
def test_spaces_separate_where_mounts_are_lines_of_a_table(runtime, reads_spaces):
    if reads_spaces:
        check_mounts(runtime, [Mount("/my data", "/data")])
        return
    with pytest.raises(UsageError, match="/my data"):
        check_mounts(runtime, [Mount("/my data", "/data")])


@pytest.mark.parametrize("mount", [Mount("data", "/data"), Mount("/data", "data"), Mount("/data/../etc", "/data")])
def test_paths_are_absolute_and_straight(mount):
    with pytest.raises(UsageError, match="no absolute path"):
        check_mounts("podman", [mount])


def test_two_folders_cannot_be_one():
    with pytest.raises(UsageError, match=r"/a and /b would both be /data"):
        check_mounts("podman", [Mount("/a", "/data"), Mount("/b", "/data/")])


@pytest.mark.parametrize("mount", ["/a:/b:ro:x", "/a:/b:rw:", "a:/b", "/a:b", "/a:/b:shared"])
def test_a_profile_knows_a_mount_when_it_sees_one(mount):
    with pytest.raises(ProfileError, match="is not a mount"):
        parse_profile({"executor": "slurm", "mounts": [mount]}, "[here]")


@pytest.mark.parametrize("key", ["remote_job_dir", "image_cache_dir"])
def test_folders_of_the_cluster_are_absolute(key):
    with pytest.raises(ProfileError, match=key):
        parse_profile({"executor": "slurm", key: "jobs"}, "[here]")


def test_pyxis_lets_the_image_win_and_the_user_still_has_the_last_word(node, slurm):
    slurm.turn(image_env={"HF_HOME": "/of/the/image", "ONLY": "image"})
    start = (sys.executable, "-I", f"{node.folder}/container_start.py", "0", f"{node.folder}/runner.py")
    started = commands("pyxis", Container("name", parse("nvcr.io/a/b"), start))
    node.job(SHOWS, run=started.run, environ={"HF_HOME": "/of/the/user"}, secrets={"HF_TOKEN": "not-a-real-one"})
    node.environ["PATH"] = slurm.environ()["PATH"]
    assert node.run() == 0, node.log()
    environ = environ_of(node)
    assert [environ[name] for name in ("HF_HOME", "ONLY", "HF_TOKEN")] == ["/of/the/user", "image", "not-a-real-one"]


def test_a_poisoned_package_of_the_home_folder_is_not_imported(node, tmp_path):
    """Not by what starts the runner, which itself gets PYTHONNOUSERSITE."""
    site = tmp_path / f"home/.local/lib/python3.{sys.version_info[1]}/site-packages"
    site.mkdir(parents=True)
    (site / "select.py").write_text("raise SystemExit('of the home folder')")
    (site / "poison.py").write_text("")
    python = sys._base_executable  # a virtual environment has no user's packages
    start = [python, "-I", f"{node.folder}/container_start.py", "0", f"{node.folder}/runner.py"]
    node.job("import poison", environ={"PYTHONNOUSERSITE": "1"}, run=start)
    node.environ["HOME"] = str(tmp_path / "home")
    assert node.run() == 1
    assert "No module named 'poison'" in node.log() and "of the home folder" not in node.log()


def test_a_job_uses_the_image_that_the_shared_folder_has(executor, job, environ, tmp_path):
    with FakeRegistry() as registry:
        registry.push("team/harness", "1.0", platforms=["linux/amd64", "linux/arm64/v8"])
        environ[INSECURE_REGISTRIES] = registry.host
        image, folder = f"{registry.host}/team/harness:1.0", str(tmp_path / "images")
        there = ensure(Here(environ), parse(image), folder, environ)
        made = Path(there).stat().st_ino
        started = executor(container_runtime="pyxis", image_cache_dir=folder).submit(job(image=image))
        assert Path(there).stat().st_ino == made
        executor(container_runtime="pyxis", image_cache_dir=folder).submit(job(image=image, rebuilds_squash=True))
        assert Path(there).stat().st_ino != made, "--force-squash"
    step = json.loads((Path(started.details["folder"]) / STEP).read_text())
    assert f"--container-image={there}" in step["run"] and Path(there).is_file()


def test_a_container_is_stopped_by_the_end_of_its_input_alone(node):
    """Some tools take signals for themselves."""
    start = f"{sys.executable} -I {node.folder}/container_start.py 0 {node.folder}/runner.py"
    node.job(ENDS_WHEN_TOLD, run=["sh", "-c", f"trap '' TERM; {start}; exit $?"])
    step = node.start()
    node.wait_for("up")
    step.terminate()
    assert step.wait(180) == 75
