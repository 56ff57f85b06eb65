"""Folders brought home: whole, resumable, and never outside of where they belong."""

import os
import threading
import time
from pathlib import Path

import pytest

from nemotron.errors import SubmitError, UsageError
from nemotron.fetch.copying import Copied, copy_folder
from nemotron.fetch.place import PARTS
from nemotron.transport.base import Entry, TransportError
from nemotron.transport.here import Here
from tests.launcher.transport.ssh_world import SshWorld

LONG_AGO = 1_700_000_000
CHUNK = 1 << 16


@pytest.fixture(params=["here", "ssh"])
def session(request, tmp_path):
    if request.param == "here":
        yield Here(os.environ)
        return
    home = tmp_path / "home"
    home.mkdir()
    world = SshWorld(home)
    world.server("login")
    yield world.session()
    world.close()


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


@pytest.fixture
def target(tmp_path):
    return tmp_path / "target"


def write(path: Path, content: bytes, when: float = LONG_AGO) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (when, when))


def tree(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


class Watched:
    """A session that tells what was read, and lets a test step in before."""

    def __init__(self, session, before=lambda path, offset: None):
        self._session, self._before = session, before
        self.reads = []

    def __getattr__(self, name):
        return getattr(self._session, name)

    def read(self, path, offset=0, size=None):
        self.reads.append((path, offset))
        self._before(path, offset)
        return self._session.read(path, offset, size)


def copy(session, source, target, **settings):
    return copy_folder(session, str(source), target, **{"sleep": lambda _: None, "chunk": CHUNK, **settings})


class TestOnce:
    def test_everything_comes_home_with_its_time(self, session, source, target):
        write(source / "summary.json", b"{}")
        write(source / "gsm8k/deep/er/results.yml", b"x" * 100)
        write(source / "big", os.urandom(2 * CHUNK + 5))
        (source / "empty").mkdir()
        write(source / "nothing", b"")
        assert copy(session, source, target) == Copied(4, 2 * CHUNK + 107, 0)
        assert tree(target) == tree(source)
        assert (target / "summary.json").stat().st_mtime == LONG_AGO

    def test_many_small_files_are_in_flight_at_once(self, session, source, target):
        for number in range(300):
            write(source / f"{number % 7}/{number}", str(number).encode())
        at_once, most, lock = set(), [0], threading.Lock()

        def before(path, offset):
            with lock:
                at_once.add(threading.get_ident())
                most[0] = max(most[0], len(at_once))
            time.sleep(0.001)

        assert copy(Watched(session, before), source, target).files == 300
        assert tree(target) == tree(source) and most[0] > 1

    def test_only_what_is_wanted(self, session, source, target):
        write(source / "job.log", b"log")
        write(source / "secrets.sealed", b"no")
        copy(session, source, target, wants=lambda path: path == "job.log")
        assert tree(target) == {"job.log": b"log"}

    def test_a_folder_that_is_not_there_is_told(self, session, target, tmp_path):
        with pytest.raises(FileNotFoundError, match="none"):
            copy(session, tmp_path / "none", target)


class TestAgain:
    def test_what_is_here_already_is_not_asked_for(self, session, source, target):
        write(source / "a", b"a")
        write(source / "b", b"b")
        copy(session, source, target)
        watched = Watched(session)
        assert copy(watched, source, target) == Copied(0, 0, 2)
        assert watched.reads == []

    @pytest.mark.parametrize("change", [(b"bb", LONG_AGO), (b"b", LONG_AGO + 5)])
    def test_what_has_changed_is_fetched_again(self, session, source, target, change):
        write(source / "a", b"a")
        write(source / "b", b"b")
        copy(session, source, target)
        write(source / "b", *change)
        assert copy(session, source, target).files == 1
        assert tree(target) == tree(source)

    def test_nothing_at_home_is_deleted(self, session, source, target):
        write(target / "notes", b"mine")
        write(source / "a", b"a")
        copy(session, source, target)
        (source / "a").unlink()
        copy(session, source, target)
        assert tree(target) == {"notes": b"mine", "a": b"a"}

    def test_a_file_that_was_cut_short_goes_on_from_there(self, session, source, target):
        write(source / "big", os.urandom(3 * CHUNK))

        def breaks(path, offset):
            if offset >= 2 * CHUNK:
                raise TransportError("connection lost")

        with pytest.raises(TransportError):
            copy(Watched(session, breaks), source, target)
        assert not (target / "big").exists()
        watched = Watched(session)
        copy(watched, source, target)
        assert tree(target) == tree(source)
        assert min(offset for _, offset in watched.reads) > CHUNK

    def test_a_part_of_an_older_state_is_not_gone_on_with(self, session, source, target):
        write(source / "big", os.urandom(2 * CHUNK))

        def breaks(path, offset):
            if offset >= CHUNK:
                raise TransportError("connection lost")

        with pytest.raises(TransportError):
            copy(Watched(session, breaks), source, target)
        write(source / "big", os.urandom(2 * CHUNK), LONG_AGO + 1)
        copy(session, source, target)
        assert tree(target) == tree(source)

    def test_a_part_that_does_not_fit_is_thrown_away(self, session, source, target):
        write(source / "big", os.urandom(2 * CHUNK))

        def breaks(path, offset):
            if offset >= CHUNK:
                raise TransportError("connection lost")

        with pytest.raises(TransportError):
            copy(Watched(session, breaks), source, target)
        (part,) = (path for path in (target / PARTS).iterdir() if path.name != "lock")
        part.write_bytes(bytes(CHUNK))
        copy(session, source, target)
        assert tree(target) == tree(source)


class TestMeanwhile:
    def test_a_file_that_is_written_meanwhile_is_fetched_again(self, session, source, target):
        write(source / "log", b"one")
        write(source / "other", b"x")
        changes = iter([b"one two"])

        def grows(path, offset):
            if path.endswith("/log") and (more := next(changes, None)):
                write(source / "log", more, LONG_AGO + 1)

        copied = copy(Watched(session, grows), source, target)
        assert tree(target) == {"log": b"one two", "other": b"x"} and copied.unsettled == ()

    def test_one_that_never_rests_is_told(self, session, source, target):
        write(source / "log", b"")
        ticks = iter(range(1, 100))

        def grows(path, offset):
            tick = next(ticks)
            write(source / "log", b"x" * tick, LONG_AGO + tick)

        write(source / "log", b"x")
        assert copy(Watched(session, grows), source, target).unsettled == ("log",)
        assert (target / "log").read_bytes().startswith(b"x")

    def test_one_that_was_written_just_now_is_looked_at_again(self, session, source, target):
        """It may be written again within the second, and have the same size."""
        write(source / "progress.json", b"1", time.time())
        assert copy(session, source, target).unsettled == ("progress.json",)
        write(source / "progress.json", b"2", time.time())
        copy(session, source, target)
        assert (target / "progress.json").read_bytes() == b"2"

    def test_one_that_vanishes_is_left_out(self, session, source, target):
        write(source / "a", b"a")
        write(source / "b", b"b")

        def vanishes(path, offset):
            if path.endswith("/b"):
                (source / "b").unlink(missing_ok=True)

        assert copy(Watched(session, vanishes), source, target).unsettled == ()
        assert tree(target) == {"a": b"a"}


def test_one_that_may_not_be_read_is_told_and_keeps_no_other_away(session, source, target):
    write(source / "a", b"a")
    write(source / "b", b"b")

    def refuses(path, offset):
        if path.endswith("/a"):
            raise PermissionError(13, "Permission denied", path)

    copied = copy(Watched(session, refuses), source, target)
    assert (copied.files, copied.unsettled, copied.refused) == (1, (), ("a",))
    assert tree(target) == {"b": b"b"}


class TestEscapes:
    """SE: a machine that is not ours decides no place outside of the target."""

    @pytest.mark.parametrize("path", ["../evil", "a/../../evil", "/etc/evil", "..", "a/\0b", "//evil"])
    def test_names_that_lead_out_are_refused_before_anything_is_copied(self, source, target, path):
        write(source / "good", b"x")
        session = Here(os.environ)
        session.walk = lambda folder: [Entry("good", 1, 0.0), Entry(path, 1, 0.0)]
        with pytest.raises(SubmitError, match="outside of its folder"):
            copy(session, source, target)
        assert tree(target).keys() <= {PARTS, f"{PARTS}/lock"}

    def test_links_there_are_not_followed(self, session, source, target, tmp_path):
        write(tmp_path / "secret", b"secret")
        (source / "link").symlink_to(tmp_path / "secret")
        (source / "folder").symlink_to(tmp_path)
        assert copy(session, source, target).files == 0

    def test_links_here_are_not_written_through(self, session, source, target, tmp_path):
        write(source / "a/file", b"x")
        target.mkdir()
        (tmp_path / "outside").mkdir()
        (target / "a").symlink_to(tmp_path / "outside")
        with pytest.raises(UsageError, match="link"):
            copy(session, source, target)
        assert list((tmp_path / "outside").iterdir()) == []

    def test_a_link_in_the_place_of_a_file_is_replaced_not_written_through(self, session, source, target, tmp_path):
        write(source / "file", b"new")
        write(tmp_path / "outside", b"old")
        target.mkdir()
        (target / "file").symlink_to(tmp_path / "outside")
        copy(session, source, target)
        assert (tmp_path / "outside").read_bytes() == b"old" and (target / "file").read_bytes() == b"new"


def test_two_at_once_do_not_meet(session, source, target):
    write(source / "file", b"x")

    def another(path, offset):
        with pytest.raises(UsageError, match="Somebody else fetches"):
            copy(session, source, target)

    copy(Watched(session, another), source, target)
    assert tree(target) == {"file": b"x"}
