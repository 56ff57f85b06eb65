"""A user's .ssh folder, and servers that it knows."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import paramiko

from nemotron.transport.destination import Destination
from nemotron.transport.ssh import Ssh
from tests.fakes.ssh_server import Manners, SshServer, new_key, new_key_text


class SshWorld:
    """Closes what it opened: sessions first."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / ".ssh"
        self.folder.mkdir(mode=0o700)
        self.identity = self.folder / "id_ed25519"
        self.key = self.new_identity(self.identity)
        self.environ = {"HOME": str(home), "PATH": os.environ["PATH"]}
        self._opened = ExitStack()

    def new_identity(self, path: Path, passphrase: str | None = None) -> paramiko.PKey:
        path.write_text(new_key_text(passphrase))
        path.chmod(0o600)
        return paramiko.Ed25519Key.from_private_key_file(str(path), passphrase)

    def server(
        self, name: str, *settings: str, host_keys: Sequence[paramiko.PKey] = (), **manners: object
    ) -> SshServer:
        """Goes by `name` in the configuration, and is known."""
        keys = host_keys or [new_key()]
        started = SshServer(keys, Manners(**{"accepted": [self.key], **manners}))
        self._opened.callback(started.close)
        self.configure(f"Host {name}", "HostName 127.0.0.1", f"Port {started.port}", "User me", *settings)
        for key in keys:
            self.know(f"[127.0.0.1]:{started.port}", key)
        return started

    def configure(self, *lines: str) -> None:
        with (self.folder / "config").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def know(self, name: str, key: paramiko.PKey) -> None:
        with (self.folder / "known_hosts").open("a") as file:
            file.write(f"{name} {key.get_name()} {key.get_base64()}\n")

    def session(self, host: str = "login", **said: object) -> Ssh:
        session = Ssh(Destination(host, **said), self.environ)
        self._opened.callback(session.close)
        return session

    def close(self) -> None:
        self._opened.close()
