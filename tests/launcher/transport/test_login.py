"""Logging in, and what is told when that is refused. Nothing ever asks."""

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import paramiko
import pytest
from paramiko.agent import SSH2_AGENT_IDENTITIES_ANSWER

from nemotron.transport.base import TransportError
from tests.fakes.ssh_server import new_key


def works(world, **said) -> bool:
    return world.session(**said).run(["echo", "hello"]).stdout == "hello\n"


def refusal(world, **said) -> str:
    with pytest.raises(TransportError) as refused:
        works(world, **said)
    message = str(refused.value)
    assert "\n" not in message
    return message


@contextmanager
def agent(*files: Path):
    """A real agent with these keys; its socket's path has to be short."""
    with tempfile.TemporaryDirectory(prefix="nel-") as folder:
        path = f"{folder}/agent"
        process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.PIPE)
        try:
            process.stdout.readline()  # it listens now
            environ = os.environ | {"SSH_AUTH_SOCK": path, "SSH_ASKPASS_REQUIRE": "never"}
            for file in files:
                subprocess.run(["ssh-add", "-q", file], env=environ, check=True, stdin=subprocess.DEVNULL)
            yield path
        finally:
            process.terminate()
            process.communicate()


@contextmanager
def agent_with(key_type: str):
    """Holds one key of that type, and signs nothing."""
    key = paramiko.Message()
    key.add_string(key_type)
    answer = paramiko.Message()
    answer.add_byte(bytes([SSH2_AGENT_IDENTITIES_ANSWER]))
    answer.add_int(1)
    answer.add_string(key.asbytes())
    answer.add_string("a device")

    def serve() -> None:
        connected, _ = listener.accept()
        with connected:
            connected.recv(100)
            connected.sendall(len(answer.asbytes()).to_bytes(4, "big") + answer.asbytes())
            connected.recv(100)

    with tempfile.TemporaryDirectory(prefix="nel-") as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/agent")
        listener.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"{folder}/agent"
        thread.join()


class TestKeys:
    def test_the_usual_files_are_tried(self, world):
        world.server("login")
        assert works(world)

    def test_the_profile_names_one(self, world):
        key = world.new_identity(world.folder / "cluster key")
        server = world.server("login", accepted=[key])
        assert works(world, identity=str(world.folder / "cluster key"))
        assert server.offered == [key.fingerprint]

    @pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
    def test_other_types_work_too(self, world, kind):
        key = paramiko.RSAKey.generate(2048) if kind == "rsa" else paramiko.ECDSAKey.generate()
        key.write_private_key_file(str(world.folder / f"id_{kind}"))
        world.server("login", accepted=[key])
        assert works(world)

    @pytest.mark.usefixtures("ssh_config")
    def test_those_of_the_agent_are_tried(self, world):
        key = world.new_identity(world.home / "elsewhere")
        world.server("login", accepted=[key])
        with agent(world.home / "elsewhere") as path:
            world.environ["SSH_AUTH_SOCK"] = path
            assert works(world)
            world.close()

    @pytest.mark.usefixtures("ssh_config")
    def test_only_the_named_ones_where_that_is_asked_for(self, world):
        key = world.new_identity(world.home / "elsewhere")
        server = world.server("login", "IdentitiesOnly yes", accepted=[key])
        with agent(world.home / "elsewhere") as path:
            world.environ["SSH_AUTH_SOCK"] = path
            refusal(world)
        assert server.offered == [world.key.fingerprint]

    @pytest.mark.usefixtures("ssh_config")
    def test_an_encrypted_one_works_through_the_agent(self, world):
        """Its public half beside it says which of the agent's it is."""
        identity, clear = world.folder / "cluster", world.home / "clear"
        key = world.new_identity(identity)
        shutil.copy(identity, clear)
        subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", identity], check=True)
        identity.with_suffix(".pub").write_text(f"{key.get_name()} {key.get_base64()}\n")
        server = world.server("login", f"IdentityFile {identity}", "IdentitiesOnly yes", accepted=[key])
        with agent(clear) as path:
            world.environ["SSH_AUTH_SOCK"] = path
            assert works(world)
            world.close()
        assert server.offered == [key.fingerprint]

    def test_a_key_that_wants_to_be_touched_is_not_asked_for(self, world):
        server = world.server("login", accepted=[])
        with agent_with("sk-ssh-ed25519@openssh.com") as path:
            world.environ["SSH_AUTH_SOCK"] = path
            refusal(world)
        assert server.offered == [world.key.fingerprint]

    def test_an_agent_that_is_gone_is_no_agent(self, world):
        world.server("login")
        world.environ["SSH_AUTH_SOCK"] = str(world.home / "gone")
        assert works(world)


class TestRefused:
    def test_what_was_tried_and_what_the_server_takes_is_told(self, world):
        other = world.new_identity(world.folder / "id_rsa")
        server = world.server("login", accepted=[], methods=("publickey", "password"))
        message = refusal(world)
        assert message.startswith("me@login refused the login. It takes publickey, password; tried: ")
        assert f"{world.folder}/id_rsa (ssh-ed25519 {other.fingerprint})" in message
        assert f"{world.identity} (ssh-ed25519 {world.key.fingerprint})" in message
        assert "ssh-copy-id" in message
        assert server.offered == [other.fingerprint, world.key.fingerprint]

    def test_an_encrypted_key_is_told_and_not_asked_about(self, world):
        world.identity.unlink()
        world.new_identity(world.folder / "cluster", "secret")
        world.server("login")
        message = refusal(world, identity=str(world.folder / "cluster"))
        assert f"{world.folder}/cluster (encrypted, and not in an agent: `ssh-add {world.folder}/cluster`)" in message

    def test_a_file_that_is_no_key_is_told(self, world):
        world.identity.write_text("no key\n")
        world.server("login")
        assert f"{world.identity} (unusable: " in refusal(world)

    def test_a_key_that_is_not_there_is_told_where_somebody_named_it(self, world):
        world.identity.unlink()
        world.server("login")
        assert "no key, as there is none" in refusal(world)
        assert f"{world.home}/none (not there)" in refusal(world, identity=f"{world.home}/none")

    def test_a_server_without_keys_is_left_to_a_person(self, world):
        world.server("login", methods=("password", "keyboard-interactive"))
        message = refusal(world)
        assert "It takes password, keyboard-interactive; tried: no key, as it takes none" in message
        assert "ControlMaster" in message

    def test_a_second_factor_is_left_to_a_person(self, world):
        world.server("login", wants_second_factor=True)
        message = refusal(world)
        assert f"takes the key {world.identity} and wants keyboard-interactive too" in message
        assert "`ssh login` once" in message

    def test_a_jump_host_that_refuses_is_the_one_that_is_named(self, world):
        world.server("jump", accepted=[new_key()])
        world.server("login", "ProxyJump jump")
        assert refusal(world).startswith("me@jump refused the login.")
