"""One login for everything, where the user's ssh shares its connection: real ssh, real sshd."""

import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from nemotron.transport.base import TransportError
from nemotron.transport.destination import Destination
from nemotron.transport.ssh import Ssh
from nemotron.transport.ssh_chain import Chain
from tests.launcher.transport.shared_login import shared_login


@contextmanager
def session_to(config: Path, host: str = "testbed-login", **said):
    session = Ssh(Destination(host, **said), {"NEMOTRON_SSH_CONFIG": str(config), "PATH": os.environ["PATH"]})
    try:
        yield session
    finally:
        session.close()


@pytest.fixture
def login(ssh_config):
    with shared_login(ssh_config, "testbed-login") as login:
        yield login


def server_of(session) -> str:
    """The process that serves the connection: the same one, the same connection."""
    return session.run(["sh", "-c", 'ps -o ppid= -p "$PPID"']).stdout.strip()


def test_every_session_goes_over_it(login):
    with session_to(login.config) as one, session_to(login.config) as other:
        assert server_of(one) == server_of(other) != ""


def test_it_stays_open_for_its_owner(login):
    with session_to(login.config) as session:
        session.run(["true"])
        session.read("/etc/hostname")
    assert login.is_open


def test_another_user_is_another_login(login):
    """By the control path, which has the user's name in it here."""
    with session_to(login.config, user="nobody") as session:
        session.run(["true"])
        assert isinstance(session._kept.line, Chain)


def test_a_code_255_of_a_command_is_a_code(login):
    with session_to(login.config) as session:
        assert session.run(["sh", "-c", "exit 255"]).code == 255


def test_when_it_has_ended_a_connection_of_our_own_takes_over(login, tmp_path):
    with session_to(login.config) as session:
        session.write(str(tmp_path / "file"), b"one")
        login.end()
        assert session.run(["echo", "hello"]).stdout == "hello\n"
        assert session.read(str(tmp_path / "file")) == b"one"


def test_when_it_ends_meanwhile_that_is_told(login):
    with session_to(login.config) as session, pytest.raises(TransportError, match=r"broke while sh ran there"):
        session.run(["sh", "-c", f"kill -9 {login.master.pid}; sleep 30"])


def test_without_a_login_ssh_is_not_asked(ssh_config, tmp_path):
    """A configuration may name a control path although nobody has logged in."""
    config = tmp_path / "config"
    config.write_text(f"ControlPath {tmp_path}/none\nInclude {ssh_config}\n")
    with session_to(config) as session:
        assert session.run(["echo", "hello"]).stdout == "hello\n"
