"""An image is in the folder once, whole, under its digest; or nothing is."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from nemotron.errors import UsageError
from nemotron.images.cache import How, cache, ensure
from nemotron.images.manifests import RegistryUnreachable
from nemotron.images.reference import Reference
from nemotron.images.registry import INSECURE_REGISTRIES
from nemotron.images.shelf.claim import Patience, claimed
from nemotron.images.shelf.record import parse_record
from nemotron.images.shelf.shelf import Shelf
from nemotron.images.shelf.shell import ShelfFailed
from nemotron.images.sqsh.squashfs import SquashFailed
from nemotron.images.sqsh.tree import ImageDamaged
from nemotron.transport.here import Here
from tests.fakes import enroot
from tests.fakes.registry import FakeRegistry
from tests.launcher.images.conftest import harness
from tests.launcher.images.sqsh.squash import content, listing
from tests.launcher.images.sqsh.tars import file, folder, layer, symlink
from tests.launcher.transport.ssh_world import SshWorld

pytestmark = pytest.mark.timeout(600)
SECONDS = 180
LAYERS = (layer(folder("etc"), file("etc/environment", "A=of the base\n"), file("x", "1")), layer(symlink("y", "x")))
CONFIG = {"Env": ["A=1"], "Cmd": ["sh"], "WorkingDir": "/srv/here"}


class Desk:
    """A user with a folder for images, at a registry."""

    def __init__(self, home: Path, registry: FakeRegistry) -> None:
        self.registry, self.home, self.folder = registry, home, home / "images"
        self.image = registry.push("team/harness", "1.0", LAYERS, ["linux/amd64", "linux/arm64/v8"], CONFIG)
        path = f"{enroot.install(home / 'bin')}:{os.environ['PATH']}"
        self.environ = {"PATH": path, "HOME": str(home), INSECURE_REGISTRIES: registry.host}
        self.environ |= {"FAKE_ENROOT_LOG": str(home / "enroot.log"), "FAKE_ENROOT_GATE": str(home / "gate")}
        self.said: list[str] = []

    @property
    def session(self) -> Here:
        return Here(self.environ)

    def have(self, version: str | Reference = ":1.0", **how: object) -> Path:
        reference = version if isinstance(version, Reference) else harness(self.registry, version)
        shelf = Shelf(self.session, str(self.folder))
        return Path(cache(shelf, reference, self.environ, How(**how), self.said.append))

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir()) if self.folder.exists() else []

    def imports(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in (self.home / "enroot.log").read_text().splitlines()]

    def command(self, version: str = ":1.0", *words: str) -> list[str]:
        image = str(harness(self.registry, version))
        return [sys.executable, "-m", "nemotron.cli.sqsh", image, "local", str(self.folder), *words]

    def start(self, *words: str, **environ: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self.command(":1.0", *words), env=self.environ | environ, stdout=pipe, stderr=pipe, text=True
        )


@pytest.fixture
def desk(tmp_path, fake, mksquashfs):
    return Desk(tmp_path, fake())


def test_the_file_is_named_by_its_digest_and_the_links_by_index_and_tag(desk):
    path = desk.have()
    digest = desk.image.platform_digest().replace(":", "-")
    assert path == desk.folder / f"{digest}.sqsh"
    index = f"{desk.image.index_digest.replace(':', '-')}.linux-amd64.sqsh"
    readable = f"{desk.registry.host.replace(':', '-')}-team-harness-1.0.sqsh"
    assert desk.names() == sorted([f"{digest}.json", f"{digest}.sqsh", index, readable])
    assert {str((desk.folder / link).readlink()) for link in (index, readable)} == {path.name}


def test_it_holds_the_image_and_what_enroot_would_add(desk):
    path = desk.have()
    seen = listing(path)
    assert (seen["x"], seen["y"], seen["srv/here"]) == ("-rw-r--r-- 1", "lrwxrwxrwx 1 -> x", "drwxr-xr-x")
    assert content(path, "etc/environment") == b"A=1\n"
    assert f"# {desk.registry.host}/team/harness@{desk.image.platform_digest()}" in content(path, "etc/rc").decode()


def test_the_record_beside_it_says_what_it_is(desk):
    path = desk.have()
    record = parse_record(path.with_suffix(".json").read_bytes())
    assert record and record.reference == f"{desk.registry.host}/team/harness:1.0"
    assert record.index_digest == desk.image.index_digest
    assert record.platform_digest == desk.image.platform_digest() and len(record.layers) == 2
    assert record.size == path.stat().st_size and record.platform == "linux/amd64"
    assert subprocess.run(["sha256sum", path], capture_output=True, text=True).stdout.startswith(record.sha256)
    assert record.tool.startswith("nemotron ") and record.created.endswith("+00:00")


def test_everybody_can_read_it_and_the_group_can_add_to_the_folder_whatever_the_umask_was(desk):
    before = os.umask(0o077)
    try:
        path = desk.have()
    finally:
        os.umask(before)
    assert {oct(entry.stat().st_mode & 0o777) for entry in (path, path.with_suffix(".json"))} == {"0o644"}
    assert oct(desk.folder.stat().st_mode & 0o777) == "0o775"


@pytest.mark.parametrize("which", ["index", "platform"])
def test_what_is_there_is_found_by_any_of_its_digests_without_the_registry(desk, which):
    path = desk.have()
    desk.registry.requests.clear()
    digest = desk.image.index_digest if which == "index" else desk.image.platform_digest()
    pinned = harness(desk.registry, f"@{digest}")
    assert ensure(desk.session, pinned, str(desk.folder), {}) == str(path)
    assert not desk.registry.requests


def test_a_pinned_image_that_is_not_there_is_made(desk):
    path = desk.have(f"@{desk.image.index_digest}")
    assert listing(path)["x"] and len(desk.names()) == 3  # no tag, so no link by one


def test_a_tag_that_is_there_costs_one_question_and_no_download(desk):
    path = desk.have()
    desk.registry.requests.clear()
    assert desk.have() == path
    assert desk.registry.count("HEAD") == 1 and desk.registry.count("GET", "/blobs/") == 0


def test_a_tag_that_moved_becomes_a_new_file_and_the_old_one_stays(desk):
    old = desk.have()
    desk.registry.push("team/harness", "1.0", [layer(file("new"))], config=CONFIG)
    new = desk.have()
    assert new != old and "new" in listing(new) and "x" in listing(old)
    readable = f"{desk.registry.host.replace(':', '-')}-team-harness-1.0.sqsh"
    assert str((desk.folder / readable).readlink()) == new.name


def test_two_tags_of_one_image_share_its_file(desk):
    desk.registry.manifests["team/harness", "2.0"] = desk.registry.manifests["team/harness", "1.0"]
    assert desk.have() == desk.have(":2.0")
    assert desk.registry.count("GET", "/blobs/") == 3  # two layers and the config, once


def test_force_makes_it_anew(desk):
    path = desk.have()
    before = path.stat().st_ino
    assert ensure(desk.session, harness(desk.registry), str(desk.folder), desk.environ, force=True) == str(path)
    assert path.stat().st_ino != before and len(desk.names()) == 4


def test_one_that_lost_bytes_is_made_anew(desk):
    path = desk.have()
    os.truncate(path, 1000)
    assert desk.have(f"@{desk.image.index_digest}") == path and path.stat().st_size > 1000


def test_eight_at_once_import_once(desk):
    desk.registry.rules.gate = gate = threading.Event()
    processes = [desk.start() for _ in range(8)]
    told = [Told(process) for process in processes]
    try:
        wait_until(lambda: sum("waiting for" in one.text for one in told) == 7)
        gate.set()
        assert [process.wait(SECONDS) for process in processes] == [0] * 8, [one.text for one in told]
    finally:
        gate.set()
        for process, one in zip(processes, told, strict=True):
            process.kill()
            one.close()
    assert len({one.out for one in told}) == 1
    assert desk.registry.count("GET", "/blobs/") == 3
    assert len(desk.names()) == 4


class Told:
    """What a process says, while it says it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.text, self.out, self._process = "", "", process
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        for line in self._process.stderr:
            self.text += line

    def close(self) -> None:
        self._thread.join(SECONDS)
        self.out, _ = self._process.communicate(timeout=SECONDS)


def test_a_killed_owner_is_followed_and_its_leavings_go(desk):
    desk.registry.rules.gate = gate = threading.Event()
    with desk.start() as owner:
        wait_until(lambda: desk.registry.count("GET", "/blobs/") >= 1)
        owner.kill()
    assert [name for name in desk.names() if name.endswith((".work", ".claim"))]
    gate.set()
    path = desk.have()
    assert listing(path) and len(desk.names()) == 4
    assert any("taking over" in line for line in desk.said)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_interrupted_import_leaves_nothing(desk, number):
    desk.registry.rules.gate = gate = threading.Event()
    with desk.start() as process:
        wait_until(lambda: desk.registry.count("GET", "/blobs/") >= 1)
        process.send_signal(number)
        time.sleep(0.2)
        gate.set()
        process.communicate(timeout=SECONDS)
    assert process.returncode != 0 and desk.names() == []


@pytest.mark.parametrize("config", [b"no json", b"[1]", b'{"config": 1}'])
def test_an_image_that_does_not_say_how_to_start_it_is_refused(desk, config):
    desk.registry.push("team/harness", "odd", LAYERS, config=config)
    with pytest.raises(ImageDamaged, match="its config says nothing"):
        desk.have(":odd")
    assert desk.names() == []


def test_an_import_that_fails_leaves_nothing(desk):
    desk.registry.rules.damaged_blobs = 100
    with pytest.raises(RegistryUnreachable, match="digest says"):
        desk.have()
    assert desk.names() == []


def test_no_room_is_said_before_anything_is_downloaded(desk, small_disk):
    desk.folder = small_disk
    desk.registry.push("team/harness", "big", [os.urandom(3_000_000)])
    with pytest.raises(ShelfFailed, match=r"has 0\.0 GB free, and .* takes about 0\.0 GB: free some with"):
        desk.have(":big")
    assert desk.names() == [] and desk.registry.count("GET", "/blobs/") == 0


def test_a_disk_that_fills_up_is_named_and_nothing_is_left(desk, small_disk):
    desk.folder = small_disk
    desk.registry.push("team/harness", "packed", [layer(file("big", os.urandom(4096) * 5000))])
    with pytest.raises(SquashFailed, match="is full"):
        desk.have(":packed")
    assert desk.names() == []


@pytest.fixture
def small_disk(tmp_path):
    """Of four megabytes."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_enroot_gets_its_own_spelling_the_digest_and_folders_beside_the_image(desk):
    path = desk.have(method="enroot")
    (done,) = desk.imports()
    assert done["image"] == f"docker://{desk.registry.host}#team/harness@{desk.image.platform_digest()}"
    folders = {done[name] for name in enroot.FOLDERS}
    assert len(folders) == 4 and all(name.startswith(f"{desk.folder}/.sha256-") for name in folders)
    assert done["srun"] is None and done["layer_mode"] == "0o644"
    record = parse_record(path.with_suffix(".json").read_bytes())
    assert record and record.tool == "enroot 3.4.1" and len(desk.names()) == 4


def test_a_registry_that_is_gone_leaves_what_its_tag_was_and_says_so(desk):
    path = desk.have()
    desk.registry.rules.busy_after, desk.registry.rules.retry_after = 0, "3600"
    assert desk.have() == path
    assert "Using sha256-" in desk.said[-1] and "too many requests" in desk.said[-1]
    with pytest.raises(RegistryUnreachable):
        desk.have(force=True)
    with pytest.raises(RegistryUnreachable):
        desk.have(":other")


def test_this_machine_builds_itself_and_asks_enroot_where_it_cannot(desk):
    assert b"nemotron" in desk.have().with_suffix(".json").read_bytes()
    commands = ("sh", "uname", "env", "cat", "stat", "rm", "mkdir", "find", "date", "readlink", "df", "tail")
    for command in (*commands, "sha256sum", "chmod", "sync", "mv", "ln", "touch"):
        (desk.home / "bin" / command).symlink_to(shutil.which(command))
    desk.environ["PATH"] = str(desk.home / "bin")
    assert b"enroot 3.4.1" in desk.have(force=True).with_suffix(".json").read_bytes()


def test_srun_is_told_what_does_not_travel_by_itself(desk):
    desk.environ |= {"SLURM_ACCOUNT": "my account", "SLURM_PARTITION": "cpu"}
    desk.have(method="enroot", mode="srun")
    assert desk.imports()[0]["srun"].split(" --")[1:] == [
        "ntasks=1",
        "job-name=cache-sqsh",
        "account=my account",
        "partition=cpu",
    ]


@pytest.mark.parametrize(
    ("manner", "said"),
    [
        ("breaks", "Could not download layer.*try --method native"),
        ("full", "No space left on device.*make room there"),
        ("denied", r"401 Unauthorized.*\.credentials there"),
    ],
)
def test_an_enroot_that_fails_is_quoted_and_leaves_nothing(desk, manner, said):
    desk.environ["FAKE_ENROOT"] = manner
    with pytest.raises(ShelfFailed, match=said):
        desk.have(method="enroot")
    assert desk.names() == []


def test_without_enroot_the_other_way_is_named(desk):
    (desk.home / "bin/enroot").unlink()
    with pytest.raises(ShelfFailed, match="--method native"):
        desk.have(method="enroot")
    assert desk.names() == []


def test_slow_imports_of_one_image_are_one(desk):
    gate = desk.home / "gate"
    processes = [desk.start("--method", "enroot", FAKE_ENROOT="slow") for _ in range(3)]
    told = [Told(process) for process in processes]
    try:
        wait_until(lambda: sum("waiting for" in one.text for one in told) == 2)
        gate.touch()
        codes = [process.wait(SECONDS) for process in processes]
    finally:
        gate.touch()
        for process, one in zip(processes, told, strict=True):
            process.kill()
            one.close()
    assert codes == [0, 0, 0] and len(desk.imports()) == 1


@pytest.fixture
def login(tmp_path):
    (tmp_path / "ssh").mkdir()
    world = SshWorld(tmp_path / "ssh")
    world.node = world.server("login")
    yield world
    world.close()


def test_what_is_built_here_arrives_there_though_the_connection_drops(desk, login):
    noise = os.urandom(20_000_000)
    desk.registry.push("team/harness", "big", [layer(file("noise", noise), compress=bytes)])
    session, drops = login.session(), []

    def drop_twice(command: str) -> None:
        if "seek_bytes" in command and len(drops) < 2:
            drops.append(command)
            login.node.drop_connections()

    login.node.commands = Watched(drop_twice)
    path = ensure(session, harness(desk.registry, ":big"), str(desk.folder), desk.environ)
    assert len(drops) == 2 and content(Path(path), "noise") == noise
    assert sorted(desk.names())[0].endswith(".sqsh") and not [name for name in desk.names() if name.startswith(".")]


def test_a_claim_on_another_machine_is_renewed_while_a_command_runs_there(desk, login):
    session, path = login.session(), desk.home / ".claim"
    with claimed(session, str(path), print, Patience(heartbeat=0.1)):
        first = path.stat().st_mtime_ns
        session.run(
            ["sh", "-c", f'until [ "$(stat -c %Y%y {path})" != "$1" ]; do sleep 0.1; done', "sh", look(path)],
            timeout=SECONDS,
        )
        assert path.stat().st_mtime_ns > first


def look(path: Path) -> str:
    return subprocess.run(["stat", "-c", "%Y%y", path], capture_output=True, text=True).stdout.strip()


class Watched(list):
    def __init__(self, look) -> None:
        super().__init__()
        self._look = look

    def append(self, command: str) -> None:
        super().append(command)
        self._look(command)


def test_a_login_node_that_has_enroot_imports_itself(desk, login, monkeypatch):
    monkeypatch.setenv("PATH", desk.environ["PATH"])
    path = ensure(login.session(), harness(desk.registry), str(desk.folder), desk.environ)
    assert b"enroot 3.4.1" in Path(path).with_suffix(".json").read_bytes()
    assert desk.registry.count("GET", "/blobs/") == 0


def test_srun_and_native_on_another_machine_do_not_go_together(desk, login):
    shelf = Shelf(login.session(), str(desk.folder))
    with pytest.raises(UsageError, match="--mode srun goes with --method enroot"):
        cache(shelf, harness(desk.registry), desk.environ, How("native", "srun"), print)


def wait_until(holds) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
