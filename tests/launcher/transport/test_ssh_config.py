"""The way to a login node, as ssh's configuration has it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nemotron.errors import UsageError
from nemotron.transport.destination import Destination
from nemotron.transport.ssh_config import route_to


@pytest.fixture
def route(tmp_path):
    def route(config: str, host: str = "login", environ=(), **said):
        folder = tmp_path / ".ssh"
        folder.mkdir(exist_ok=True)
        (folder / "config").write_text(config)
        return route_to(Destination(host, **said), {"HOME": str(tmp_path)} | dict(environ))

    route.home = tmp_path
    return route


def names(hops):
    return [str(hop) for hop in hops]


def test_a_host_that_nobody_configured_is_taken_as_it_is(route):
    (hop,) = route("", "login.example.com", user="me")
    assert (hop.host, hop.port, str(hop)) == ("login.example.com", 22, "me@login.example.com")
    assert hop.identities == tuple(route.home / ".ssh" / f"id_{kind}" for kind in ("rsa", "ecdsa", "ed25519"))
    assert hop.known_hosts[0] == route.home / ".ssh/known_hosts"


def test_the_configuration_fills_what_the_profile_leaves_out(route):
    (hop,) = route(
        "Host login\n  HostName l1.example.com\n  User me\n  Port 2222\n  IdentityFile ~/.ssh/cluster\n"
        "  IdentitiesOnly yes\n  UserKnownHostsFile ~/.ssh/known_cluster\n  GlobalKnownHostsFile /dev/null\n"
        "  HostKeyAlias cluster\n  ConnectTimeout 7\n  ServerAliveInterval 2m\n  ProxyCommand nc %h %p\n"
    )
    assert (hop.host, hop.user, hop.port, hop.key_name) == ("l1.example.com", "me", 2222, "cluster")
    assert hop.known_hosts == (route.home / ".ssh/known_cluster", Path("/dev/null"))
    assert (hop.only_identities, hop.connect_timeout, hop.keepalive) == (True, 7, 120)
    assert hop.proxy_command == "nc l1.example.com 2222"


def test_the_profile_wins(route):
    config = "Host login\n  User me\n  Port 2222\n  IdentityFile ~/.ssh/other\n  ProxyCommand nc %h %p %r\n"
    (hop,) = route(config, user="you", port=22, identity="~/.ssh/mine")
    assert (hop.user, hop.port, hop.identities[0]) == ("you", 22, route.home / ".ssh/mine")
    assert hop.proxy_command == "nc login 22 you"


def test_the_first_value_counts_and_patterns_are_those_of_ssh(route):
    (hop,) = route("Host !login *\n  Port 1\nHost lo?in other\n  Port 2\nHost *\n  Port 3\n  User last\n", "login")
    assert (hop.port, hop.user) == (2, "last")


def test_a_match_may_ask_a_command(tmp_path):
    """In a process of its own, as paramiko's way of asking leaves files open."""
    config = tmp_path / "config"
    config.write_text('Match host login exec "test %n = login"\n  Port 1\nMatch exec false\n  User no\n')
    code = (
        "import os; from nemotron.transport.ssh_config import *\n"
        "print(*[(hop.user, hop.port) for hop in route_to(Destination('login'), os.environ)])"
    )
    environ = os.environ | {"NEMOTRON_SSH_CONFIG": str(config), "LOGNAME": "me"}
    done = subprocess.run([sys.executable, "-c", code], env=environ, stdin=subprocess.DEVNULL, capture_output=True)
    assert done.stdout.decode() == "('me', 1)\n", done.stderr.decode()


class TestJumps:
    def test_each_hop_has_its_own_configuration(self, route):
        config = (
            "Host login\n  ProxyJump you@a:2201, b\nHost a\n  HostName a.example.com\n  User me\n"
            "Host b\n  Port 2202\n  User bee\nHost *\n  User me\n"
        )
        hops = route(config)
        assert names(hops) == ["you@a", "bee@b", "me@login"]
        assert [(hop.host, hop.port) for hop in hops] == [("a.example.com", 2201), ("b", 2202), ("login", 22)]
        assert [hop.behind for hop in hops[2:]] == ["bee@b"]

    def test_a_jump_host_may_be_behind_another(self, route):
        config = "Host *\n  User me\nHost login\n  ProxyJump b\nHost b\n  ProxyJump a\n"
        assert names(route(config)) == ["me@a", "me@b", "me@login"]

    def test_the_later_of_several_do_not_jump_by_themselves(self, route):
        config = "Host *\n  User me\nHost login\n  ProxyJump a,b\nHost b\n  ProxyJump c\n"
        assert names(route(config)) == ["me@a", "me@b", "me@login"]

    def test_the_first_one_may_be_behind_a_command(self, route):
        config = "Host *\n  User me\nHost login\n  ProxyJump a\nHost a\n  ProxyCommand nc %h %p\n"
        assert [hop.proxy_command for hop in route(config)] == ["nc a 22", None]

    @pytest.mark.parametrize("jump", ["ssh://me@[::1]:2222", "me@[::1]:2222"])
    def test_addresses_are_read(self, route, jump):
        first, _ = route(f"Host login\n  ProxyJump {jump}\n  User me\n")
        assert (first.user, first.host, first.port) == ("me", "::1", 2222)

    def test_of_jump_and_command_the_first_counts(self, route):
        config = "Host login\n  ProxyCommand nc %h %p\n  User me\nHost *\n  ProxyJump a\n"
        assert [hop.proxy_command for hop in route(config)] == ["nc login 22"]

    def test_none_is_no_jump(self, route):
        config = "Host a\n  ProxyJump none\nHost *\n  ProxyJump a\n  User me\n"
        assert names(route(config)) == ["me@a", "me@login"]

    @pytest.mark.parametrize(
        ("config", "named"),
        [("Host *\n  ProxyJump a\n", "circle"), ("Host login\n  ProxyJump a b\n", "'a b'")],
    )
    def test_what_leads_nowhere_is_told(self, route, config, named):
        with pytest.raises(UsageError, match=named):
            route(config)


class TestFiles:
    def test_included_files_are_read_in_their_place(self, route):
        folder = route.home / ".ssh"
        (folder / "config.d").mkdir(parents=True)
        (folder / "config.d/10.conf").write_text("Host login\n  Port 2210\nHost other\n  User no\n")
        (folder / "config.d/20.conf").write_text("Host login\n  Port 2220\n  Include ~/.ssh/more\n")
        (folder / "more").write_text("User more\n")
        (hop,) = route(
            "Host login\n  HostName first\n  Include config.d/*.conf none.d/*\n  User last\n  ConnectTimeout 3\n"
        )
        assert (hop.host, hop.port, hop.user, hop.connect_timeout) == ("first", 2210, "more", 3)

    def test_another_configuration_may_be_named(self, route, tmp_path):
        (tmp_path / "other").write_text("Host *\n  User other\n")
        (hop,) = route("Host *\n  User me\n", environ={"NEMOTRON_SSH_CONFIG": str(tmp_path / "other")})
        assert hop.user == "other"

    @pytest.mark.parametrize(
        ("config", "named"),
        [
            ("Host login\n  Port many\n", "many"),
            ("Host 'login\n", "cannot be read"),
            ("???\n", r"mend .*\.ssh/config"),
            ("CanonicalizeHostname yes\n", "canonicaldomains"),
            ("Include ~/.ssh/config\n", "Include"),
        ],
    )
    def test_what_cannot_be_used_is_one_line(self, route, config, named):
        with pytest.raises(UsageError, match=named):
            route(config)

    def test_a_named_configuration_must_be_there(self, route):
        with pytest.raises(UsageError, match="NEMOTRON_SSH_CONFIG=/none"):
            route("", environ={"NEMOTRON_SSH_CONFIG": "/none"})


class TestAgent:
    def test_it_is_that_of_the_environment(self, route):
        (hop,) = route("", environ={"SSH_AUTH_SOCK": "/agent"})
        assert hop.agent == "/agent"

    @pytest.mark.parametrize(("said", "agent"), [("none", None), ("SSH_AUTH_SOCK", "/agent"), ("/other", "/other")])
    def test_the_configuration_may_name_another(self, route, said, agent):
        (hop,) = route(f"IdentityAgent {said}\n", environ={"SSH_AUTH_SOCK": "/agent"})
        assert hop.agent == agent


@pytest.mark.parametrize(
    "said",
    [
        {"host": "-oProxyCommand=x"},
        {"host": "me@login"},
        {"host": "a b"},
        {"host": "login", "user": "a b"},
        {"host": "login", "user": "-x"},
        {"host": "login", "identity": "a\nProxyCommand x"},
    ],
)
def test_a_profile_cannot_say_more_than_it_names(said):
    with pytest.raises(UsageError, match=r"host|user|identity"):
        Destination(**said)
