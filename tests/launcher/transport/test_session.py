"""What every session does, on every way to a machine."""

import os
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from nemotron.transport.base import Entry, TransportError
from nemotron.transport.destination import Destination
from nemotron.transport.here import Here
from nemotron.transport.ssh import Ssh
from nemotron.transport.ssh_shared import SharedLine
from tests.launcher.transport.shared_login import shared_login

MIB = 1 << 20
WORDS = ["a b", "'q'", '"', "$HOME", "`id`", "$(id)", "new\nline\n", "\\", "\\\\'", "!!", "*", "~", "", "é", "#x", "-n"]


def real(config: Path, host: str, opened: ExitStack) -> Ssh:
    session = Ssh(Destination(host), {"NEMOTRON_SSH_CONFIG": str(config), "PATH": os.environ["PATH"]})
    opened.callback(session.close)
    return session


@pytest.fixture(scope="module")
def kept():
    """Sessions to real servers serve many tests, as they serve many commands."""
    with ExitStack() as opened:
        sessions = {}

        def session(way: str, config: Path) -> Ssh:
            if way not in sessions:
                sessions[way] = _session(way, config, opened)
            return sessions[way]

        yield session


def _session(way: str, config: Path, opened: ExitStack) -> Ssh:
    match way:
        case "sshd":
            return real(config, "testbed-login", opened)
        case "sshd behind a jump host":
            return real(config, "testbed-behind", opened)
        case "shared":
            login = opened.enter_context(shared_login(config, "testbed-login"))
            session = real(login.config, "testbed-login", opened)
            assert session.run(["true"]).code == 0 and isinstance(session._kept.line, SharedLine)
            return session
    raise AssertionError(way)


@pytest.fixture(params=["here", "in process", "in process, two jumps", "sshd", "sshd behind a jump host", "shared"])
def session(request, kept):
    match request.param:
        case "here":
            return Here(os.environ)
        case "in process":
            world = request.getfixturevalue("world")
            world.server("login")
            return world.session()
        case "in process, two jumps":
            world = request.getfixturevalue("world")
            world.server("a"), world.server("b"), world.server("login", "ProxyJump a,b")
            return world.session()
    return kept(request.param, request.getfixturevalue("ssh_config"))


class TestCommands:
    def test_both_streams_and_the_exit_code_come_back(self, session):
        done = session.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
        assert (done.code, done.stdout, done.stderr) == (3, "out\n", "err\n")

    def test_no_shell_reads_the_arguments(self, session):
        done = session.run(["printf", "%s|", *WORDS])
        assert done.stdout == "".join(f"{word}|" for word in WORDS)

    def test_ten_mib_on_each_stream_arrive(self, session):
        done = session.run(["sh", "-c", f"head -c {10 * MIB} /dev/zero; head -c {10 * MIB} /dev/zero >&2"])
        assert (len(done.stdout), len(done.stderr)) == (10 * MIB, 10 * MIB)

    def test_standard_input_arrives_whole_and_ends(self, session):
        assert session.run(["wc", "-c"], stdin=b"x" * 3 * MIB).stdout.split() == [str(3 * MIB)]

    def test_a_command_that_reads_nothing_may_be_given_something(self, session):
        assert session.run(["true"], stdin=b"x" * 3 * MIB).code == 0

    def test_one_that_is_not_there_is_127(self, session):
        done = session.run(["no-such-command", "x"])
        assert done.code == 127 and "no-such-command" in done.said

    def test_one_that_takes_too_long_is_given_up(self, session):
        with pytest.raises(TransportError, match=r"sleep on .* gave no answer within 1 s"):
            session.run(["sleep", "30"], timeout=1)
        assert session.run(["echo", "next"]).stdout == "next\n"

    def test_many_may_run_at_once(self, session):
        answers = {}
        threads = [
            threading.Thread(target=lambda n=n: answers.update({n: session.run(["echo", str(n)]).stdout.strip()}))
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == {n: str(n) for n in range(8)}


class TestFiles:
    def test_what_is_written_is_read(self, session, tmp_path):
        path = str(tmp_path / "new folder/one more/ö 'quoted'")
        content = os.urandom(MIB) + b"\r\nend"
        session.write(path, content)
        assert session.read(path) == content == Path(path).read_bytes()
        assert session.read(path, MIB) == b"\r\nend" and session.read(path, MIB, 4) == b"\r\nen"
        assert session.read(path, 2, 100_000) == content[2:100_002] and session.read(path, 2 * MIB, 5) == b""

    @pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
    def test_a_file_has_its_mode_and_no_temporary_file_is_left(self, session, tmp_path, mode):
        session.write(str(tmp_path / "file"), b"x", mode)
        assert (tmp_path / "file").stat().st_mode & 0o777 == mode
        assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == ["file"]

    def test_an_older_file_is_replaced_in_one_step(self, session, tmp_path):
        target = tmp_path / "file"
        target.write_text("old")
        with target.open() as opened:
            session.write(str(target), b"new")
            assert (opened.read(), target.read_text()) == ("old", "new")

    def test_what_fails_leaves_no_temporary_file(self, session, tmp_path):
        (tmp_path / "folder/x").mkdir(parents=True)
        with pytest.raises(OSError):
            session.write(str(tmp_path / "folder"), b"x")
        assert sorted(path.name for path in tmp_path.iterdir() if path.name != "home") == ["folder"]

    def test_errors_are_those_of_open(self, session, tmp_path):
        with pytest.raises(FileNotFoundError, match="no-such-file"):
            session.read(str(tmp_path / "no-such-file"))
        with pytest.raises(FileNotFoundError):
            list(session.walk(str(tmp_path / "no-such-folder")))
        with pytest.raises(OSError):
            session.read(str(tmp_path))

    def test_walking_names_folders_before_their_content_and_follows_no_link(self, session, tmp_path):
        top = tmp_path / "top"
        (top / "b/c").mkdir(parents=True)
        (top / "b/c/file").write_bytes(b"123")
        (top / "a.txt").write_bytes(b"1")
        (top / "link").symlink_to(tmp_path)
        (top / "dangling").symlink_to("nowhere")
        os.utime(top / "a.txt", (10, 10))
        found = list(session.walk(str(top)))
        assert Entry("a.txt", 1, 10.0) in found
        paths = [entry.path for entry in found]
        assert sorted(paths) == ["a.txt", "b", "b/c", "b/c/file"]
        assert paths.index("b") < paths.index("b/c") < paths.index("b/c/file")
        assert [entry.path for entry in found if entry.is_folder] == ["b", "b/c"]

    @pytest.mark.parametrize("session", ["here", "sshd", "shared"], indirect=True)
    def test_names_may_be_any_bytes(self, session, tmp_path):
        top = tmp_path / "top"
        top.mkdir()
        Path(os.fsdecode(os.fsencode(top) + b"/caf\xe9")).write_bytes(b"1")
        (found,) = session.walk(str(top))
        assert session.read(f"{top}/{found.path}") == b"1"

    def test_removing_takes_files_and_folders_and_what_is_not_there(self, session, tmp_path):
        top = tmp_path / "top"
        (top / "b/c").mkdir(parents=True)
        (top / "b/c/file").write_bytes(b"123")
        (top / "link").symlink_to(tmp_path / "kept")
        (tmp_path / "kept").mkdir()
        session.remove(str(top / "b/c/file"))
        assert not (top / "b/c/file").exists()
        for _ in range(2):
            session.remove(str(top))
        assert not top.exists() and (tmp_path / "kept").exists()

    def test_what_may_not_be_written_is_a_permission_error(self, session):
        with pytest.raises(PermissionError, match="nel-test"):
            session.write("/sys/kernel/nel-test", b"x")
