"""Connections that break, servers that are silent, and what is left behind: nothing."""

import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from nemotron.errors import ProfileError
from nemotron.transport.base import TransportError
from nemotron.transport.here import Here
from nemotron.transport.reach import close_sessions, session_for

RELAY = """
import socket, sys, threading
there = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def copy():
    while chunk := sys.stdin.buffer.read1(65536): there.sendall(chunk)
    there.shutdown(socket.SHUT_WR)
threading.Thread(target=copy, daemon=True).start()
while chunk := there.recv(65536): sys.stdout.buffer.write(chunk); sys.stdout.buffer.flush()
"""


def children() -> set[str]:
    """Processes of this one, zombies too."""
    return set(Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split())


class TestOneConnection:
    def test_everything_goes_over_it(self, world, tmp_path):
        server = world.server("login")
        session = world.session()
        for number in range(5):
            session.run(["true"])
            session.write(str(tmp_path / f"{number}"), b"x")
            session.read(str(tmp_path / f"{number}"))
        assert server.connections == 1

    def test_none_is_made_before_it_is_needed(self, world):
        server = world.server("login")
        assert world.session().name == "me@login" and server.connections == 0

    def test_a_kept_one_that_broke_is_made_again_before_a_command(self, world):
        server = world.server("login")
        session = world.session()
        session.run(["true"])
        server.drop_connections()
        assert session.run(["echo", "again"]).stdout == "again\n"
        assert server.connections == 2 and len(server.commands) == 2

    def test_a_kept_one_that_broke_is_made_again_for_files(self, world, tmp_path):
        server = world.server("login")
        session = world.session()
        session.write(str(tmp_path / "file"), b"one")
        server.drop_connections()
        session.write(str(tmp_path / "file"), b"two")
        server.drop_connections()
        assert session.read(str(tmp_path / "file")) == b"two"
        server.drop_connections()
        assert "file" in [entry.path for entry in session.walk(str(tmp_path))]
        assert server.connections == 4

    def test_a_server_that_is_gone_is_told(self, world):
        server = world.server("login")
        session = world.session()
        session.run(["true"])
        server.close()
        with pytest.raises(
            TransportError, match=f"me@login cannot be reached: 127.0.0.1 port {server.port}: .*refused"
        ):
            session.run(["true"])


class TestSilence:
    """LN-11: what was sent may have happened, so it is never sent twice."""

    def test_a_command_without_an_answer_ends_at_its_limit(self, world, tmp_path):
        server = world.server("login", falls_silent=True)
        with pytest.raises(TransportError, match="touch on me@login gave no answer within 1 s"):
            world.session().run(["touch", str(tmp_path / "done")], timeout=1)
        deadline = time.monotonic() + 180
        while not (tmp_path / "done").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert len(server.commands) == 1

    def test_a_request_without_an_answer_ends_at_its_limit(self, world):
        world.server("login", ignores_commands=True)
        with pytest.raises(TransportError, match="true on me@login gave no answer within 1 s"):
            world.session().run(["true"], timeout=1)

    @pytest.mark.parametrize("manner", ["drops", "ends_without_status"])
    def test_a_connection_that_breaks_meanwhile_is_told_and_nothing_is_repeated(self, world, tmp_path, manner):
        server = world.server("login", **{manner: True})
        with pytest.raises(TransportError, match=r"to me@login broke while touch ran there .*: it may have run"):
            world.session().run(["touch", str(tmp_path / "done")])
        assert (tmp_path / "done").exists() and len(server.commands) == 1

    def test_the_next_command_gets_a_new_connection(self, world):
        server = world.server("login", drops=True)
        session = world.session()
        with pytest.raises(TransportError):
            session.run(["true"])
        server.manners.drops = False
        assert session.run(["echo", "hello"]).stdout == "hello\n"

    def test_a_server_that_never_speaks_is_given_up(self, world):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            world.configure("Host login", "HostName 127.0.0.1", "User me", f"Port {listener.getsockname()[1]}")
            world.configure("  ConnectTimeout 1")
            with pytest.raises(TransportError, match="No SSH connection with me@login"):
                world.session().run(["true"])

    def test_one_that_speaks_something_else_is_told(self, world):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            world.configure("Host login", "HostName 127.0.0.1", "User me", f"Port {listener.getsockname()[1]}")

            def answer():
                connected, _ = listener.accept()
                with connected:
                    connected.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

            thread = threading.Thread(target=answer)
            thread.start()
            with pytest.raises(TransportError, match="No SSH connection with me@login"):
                world.session().run(["true"])
            thread.join()


class TestExitCodes:
    def test_a_signal_is_128_and_its_number(self, world):
        world.server("login")
        assert world.session().run(["sh", "-c", "kill -9 $$"]).code == 137

    def test_a_name_that_is_nowhere_is_told(self, world):
        with pytest.raises(TransportError, match=r"@no-such-host\.invalid cannot be reached: .* port 22: "):
            world.session("no-such-host.invalid").run(["true"])


class TestLimits:
    def test_a_server_with_few_channels_says_so(self, world):
        world.server("login", most_channels=1)
        session = world.session()
        session.run(["true"])
        with pytest.raises(TransportError, match="me@login opens no further channel"):
            session.run(["true"])

    def test_files_make_do_with_the_channels_that_there_are(self, world, tmp_path):
        server = world.server("login", most_channels=2)
        session = world.session()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: session.write(str(tmp_path / f"file-{n}"), b"x" * n), range(40)))
        assert all((tmp_path / f"file-{n}").read_bytes() == b"x" * n for n in range(40))
        assert server.connections == 1

    def test_one_without_sftp_says_so(self, world):
        world.server("login", has_sftp=False)
        with pytest.raises(TransportError, match="SFTP"):
            world.session().read("/etc/hostname")


class TestHops:
    def test_several_are_gone_through_in_order(self, world):
        servers = [world.server("a"), world.server("b"), world.server("login", "ProxyJump a,b")]
        assert world.session().run(["echo", "hello"]).stdout == "hello\n"
        assert [server.connections for server in servers] == [1, 1, 1]
        assert [len(server.commands) for server in servers] == [0, 0, 1]

    def test_what_a_jump_host_cannot_reach_is_told(self, world):
        world.server("jump")
        login = world.server("login", "ProxyJump jump")
        login.close()
        with pytest.raises(TransportError, match=rf"me@login cannot be reached through me@jump: .* port {login.port}"):
            world.session().run(["true"])

    def test_a_jump_host_that_goes_away_is_gone_through_again(self, world):
        jump = world.server("jump")
        world.server("login", "ProxyJump jump")
        session = world.session()
        session.run(["true"])
        jump.drop_connections()
        assert session.run(["echo", "again"]).stdout == "again\n"
        assert jump.connections == 2


class TestProxyCommand:
    @pytest.fixture
    def relay(self, tmp_path):
        (tmp_path / "relay.py").write_text(RELAY)
        return f"ProxyCommand {sys.executable} {tmp_path}/relay.py %p"

    def test_it_is_used_and_ends_with_the_session(self, world, relay):
        before = children()
        world.server("login", relay)
        session = world.session()
        assert session.run(["echo", "hello"]).stdout == "hello\n"
        assert len(children() - before) == 1
        session.close()
        assert children() == before

    def test_its_last_words_are_told_and_no_zombie_is_left(self, world):
        before = children()
        world.server("login", "ProxyCommand echo no ticket for %h >&2; exit 1")
        with pytest.raises(TransportError, match=r"Its ProxyCommand says: no ticket for 127\.0\.0\.1"):
            world.session().run(["true"])
        assert children() == before

    def test_one_that_ignores_its_end_is_killed(self, world, relay):
        before = children()
        world.server("login", relay.replace("ProxyCommand ", "ProxyCommand env --ignore-signal=TERM "))
        session = world.session()
        session.run(["true"])
        session.close()
        assert children() == before


def test_closing_leaves_no_thread_and_no_socket(world, tmp_path):
    world.server("jump"), world.server("login", "ProxyJump jump")
    session = world.session()
    session.run(["true"])
    session.read("/etc/hostname")
    with pytest.raises(TransportError):
        session.run(["sleep", "30"], timeout=0.1)
    world.close()
    assert [thread.name for thread in threading.enumerate() if "paramiko" in repr(thread).lower()] == []


class TestReach:
    @staticmethod
    def profile(**said):
        blank = {"is_here": False, "host": "login", "user": None, "port": None, "identity": None}
        return SimpleNamespace(**blank | said)

    @pytest.fixture(autouse=True)
    def closed(self):
        yield
        close_sessions()

    def test_this_machine_needs_no_server(self, world):
        assert isinstance(session_for(self.profile(is_here=True, host=None), world.environ), Here)

    def test_the_same_machine_is_the_same_session(self, world):
        server = world.server("login")
        sessions = [session_for(self.profile(), world.environ) for _ in range(30)]
        assert {session.run(["echo", "hello"]).stdout for session in sessions} == {"hello\n"}
        assert server.connections == 1 and len(set(map(id, sessions))) == 1

    def test_another_user_is_another_session(self, world):
        world.server("login")
        mine, yours = (session_for(self.profile(user=user), world.environ) for user in ("me", "you"))
        assert (mine.name, yours.name) == ("me@login", "you@login")

    def test_ssh_without_a_host_is_refused(self, world):
        with pytest.raises(ProfileError, match='add host = "NAME"'):
            session_for(self.profile(host=None), world.environ)

    def test_a_process_ends_although_its_session_is_open(self, world):
        world.server("login")
        code = (
            "import os; from types import SimpleNamespace; from nemotron.transport.reach import session_for\n"
            "profile = SimpleNamespace(is_here=False, host='login', user=None, port=None, identity=None)\n"
            "print(session_for(profile, os.environ).run(['echo', 'hello']).stdout)"
        )
        environ = world.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-X", "dev", "-c", code], env=environ, capture_output=True, text=True)
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "hello", "")
