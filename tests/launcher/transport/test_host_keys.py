"""No server is believed at first sight."""

import base64
import hashlib
import hmac

import paramiko
import pytest

from nemotron.transport.base import TransportError
from nemotron.transport.known_hosts import fingerprint, parse_known_hosts, preferred_types
from tests.fakes.ssh_server import new_key


@pytest.fixture(scope="module")
def rsa():
    return paramiko.RSAKey.generate(2048)


def hashed(name: str) -> str:
    salt = b"0123456789abcdefghij"
    digest = hmac.new(salt, name.encode(), "sha1").digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def forget(world):
    (world.folder / "known_hosts").unlink()


def works(world) -> bool:
    return world.session().run(["echo", "hello"]).stdout == "hello\n"


class TestUnknown:
    def test_it_is_refused_with_the_fingerprint_and_how_to_add_it(self, world):
        server = world.server("login")
        forget(world)
        with pytest.raises(TransportError) as refused:
            works(world)
        message = str(refused.value)
        assert f"ssh-ed25519 {server.host_keys[0].fingerprint}" in message and "\n" not in message
        assert f"ssh-keyscan -p {server.port} -t ed25519 127.0.0.1 >> {world.folder / 'known_hosts'}" in message
        assert "`ssh me@login` once" in message
        assert server.offered == []

    def test_its_fingerprint_is_the_one_of_openssh(self):
        key = new_key()
        expected = base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")
        assert fingerprint(key.asbytes()) == key.fingerprint == f"SHA256:{expected}"

    def test_one_behind_a_jump_host_is_asked_for_from_there(self, world):
        world.server("jump")
        server = world.server("login", "ProxyJump jump")
        known = (world.folder / "known_hosts").read_text().splitlines()
        (world.folder / "known_hosts").write_text(known[0] + "\n")
        with pytest.raises(TransportError, match=rf"`ssh me@jump ssh-keyscan -p {server.port} -t ed25519 127.0.0.1 >>"):
            works(world)

    def test_a_jump_host_is_checked_as_well(self, world):
        jump = world.server("jump")
        world.server("login", "ProxyJump jump")
        known = (world.folder / "known_hosts").read_text().splitlines()
        (world.folder / "known_hosts").write_text(known[1] + "\n")
        with pytest.raises(TransportError, match="me@jump is unknown"):
            works(world)
        assert jump.offered == []


class TestChanged:
    def test_it_is_refused_with_both_fingerprints(self, world):
        server = world.server("login")
        old = new_key()
        forget(world)
        world.know(f"[127.0.0.1]:{server.port}", old)
        with pytest.raises(TransportError) as refused:
            works(world)
        message = str(refused.value)
        assert old.fingerprint in message and server.host_keys[0].fingerprint in message
        assert f"ssh-keygen -R '[127.0.0.1]:{server.port}'" in message
        assert server.offered == []

    def test_another_type_than_the_known_one_is_a_change_too(self, world, rsa):
        server = world.server("login")
        forget(world)
        world.know(f"[127.0.0.1]:{server.port}", rsa)
        with pytest.raises(TransportError, match="another host key"):
            works(world)

    def test_a_revoked_one_is_refused_even_where_it_is_known(self, world):
        server = world.server("login")
        world.know(f"@revoked [127.0.0.1]:{server.port}", server.host_keys[0])
        with pytest.raises(TransportError, match="revoked"):
            works(world)


class TestSeveralKeys:
    @pytest.mark.parametrize("known", [0, 1, 2])
    def test_the_type_that_is_known_is_asked_for(self, world, rsa, known):
        server = world.server("login", host_keys=[rsa, paramiko.ECDSAKey.generate(), new_key()])
        forget(world)
        world.know(f"[127.0.0.1]:{server.port}", server.host_keys[known])
        assert works(world)

    def test_types_that_cannot_be_read_change_nothing(self, world):
        server = world.server("login")
        with (world.folder / "known_hosts").open("a") as file:
            file.write(f"[127.0.0.1]:{server.port} sk-ssh-ed25519@openssh.com AAAA\n")
        assert works(world)

    def test_the_known_ones_come_first_in_the_order_of_the_file(self):
        entries = list(parse_known_hosts("h ssh-rsa AAAA\nh ssh-ed25519 AAAA\n"))
        offered = ["ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256"]
        in_order = ["rsa-sha2-512", "rsa-sha2-256", "ssh-ed25519", "ecdsa-sha2-nistp256"]
        assert list(preferred_types(entries, offered))[:4] == in_order

    def test_certified_ones_come_first_where_an_authority_is_known(self):
        entries = list(parse_known_hosts("@cert-authority h ssh-rsa AAAA\nh ssh-rsa AAAA\n"))
        certified = "ssh-ed25519-cert-v01@openssh.com"
        assert preferred_types(entries, ["ssh-ed25519", "rsa-sha2-512"])[0] == certified


class TestNames:
    @pytest.mark.parametrize(
        "name",
        [
            "[127.0.0.1]:{port}",
            "127.0.0.1",
            "other,[127.0.0.1]:{port}",
            "[127.0.0.?]:{port}",
            "*",
            "127.0.0.*,!127.0.0.2",
        ],
    )
    def test_it_may_be_known_by(self, world, name):
        server = world.server("login")
        forget(world)
        world.know(name.format(port=server.port), server.host_keys[0])
        assert works(world)

    @pytest.mark.parametrize("name", ["[127.0.0.1]:{port}", "127.0.0.1"])
    def test_it_may_be_hashed(self, world, name):
        server = world.server("login")
        forget(world)
        world.know(hashed(name.format(port=server.port)), server.host_keys[0])
        assert works(world)

    @pytest.mark.parametrize(
        "name", ["[127.0.0.1]:1", "*,!127.0.0.1,![127.0.0.1]:{port}", "127.0.0", hashed("other"), "|1|x"]
    )
    def test_it_is_not_known_by(self, world, name):
        server = world.server("login")
        forget(world)
        world.know(name.format(port=server.port), server.host_keys[0])
        with pytest.raises(TransportError, match="is unknown"):
            works(world)

    def test_an_alias_stands_for_name_and_port(self, world):
        server = world.server("login", "HostKeyAlias Cluster")
        forget(world)
        world.know("cluster", server.host_keys[0])
        assert works(world)

    def test_other_files_may_be_named(self, world):
        server = world.server("login", f"UserKnownHostsFile /none {world.folder}/more")
        forget(world)
        world.know(f"[127.0.0.1]:{server.port}", server.host_keys[0])
        (world.folder / "known_hosts").rename(world.folder / "more")
        assert works(world)

    def test_lines_that_are_no_keys_are_passed_over(self):
        text = "# no\n\nhost\nhost ssh-rsa\nhost ssh-rsa !!!\n@cert-authority *.x ssh-rsa AAAA\nhost ssh-rsa AAAA me\n"
        assert [(entry.hosts, entry.marker) for entry in parse_known_hosts(text)] == [
            ("*.x", "@cert-authority"),
            ("host", ""),
        ]
