"""Sites that sign keys instead of handing them out: a real sshd with a certificate, and users with one."""

import os
import socket
import subprocess
import time
from getpass import getuser
from pathlib import Path

import pytest

from nemotron.transport.base import TransportError
from nemotron.transport.destination import Destination
from nemotron.transport.ssh import Ssh

SERVER = """\
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host
HostCertificate {folder}/host-cert.pub
TrustedUserCAKeys {folder}/authority.pub
AuthorizedKeysFile none
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
"""
CLIENT = """\
Host login
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder}/user
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile none
"""


def keygen(*words: object) -> None:
    subprocess.run(["ssh-keygen", "-q", *map(str, words)], check=True, stderr=subprocess.DEVNULL)


class Site:
    """An authority that signs the keys of its host and of its users."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("authority", "other", "host", "user"):
            keygen("-t", "ed25519", "-N", "", "-f", folder / name)
        self.sign_host()
        self.sign_user()
        self.trust("@cert-authority *", "authority")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        (folder / "sshd.conf").write_text(SERVER.format(folder=folder, port=self.port))
        (folder / "config").write_text(CLIENT.format(folder=folder, port=self.port))

    def sign_host(self, *options: str, names: str = "127.0.0.1", authority: str = "authority") -> None:
        keygen("-s", self.folder / authority, "-I", "a host", "-h", "-n", names, *options, self.folder / "host.pub")

    def sign_user(self, certificate: str = "user-cert.pub") -> None:
        keygen("-s", self.folder / "authority", "-I", "a user", "-n", getuser(), self.folder / "user.pub")
        (self.folder / "user-cert.pub").rename(self.folder / certificate)

    def trust(self, what: str, key: str) -> None:
        (self.folder / "known_hosts").write_text(f"{what} {(self.folder / f'{key}.pub').read_text()}")

    def works(self) -> bool:
        """Through an sshd that serves what is signed just now."""
        server = subprocess.Popen(
            ["/usr/sbin/sshd", "-D", "-e", "-f", self.folder / "sshd.conf"], stderr=subprocess.DEVNULL
        )
        environ = {"NEMOTRON_SSH_CONFIG": str(self.folder / "config"), "PATH": os.environ["PATH"]}
        session = Ssh(Destination("login"), environ)
        try:
            self._wait(server)
            return session.run(["echo", "hello"]).stdout == "hello\n"
        finally:
            session.close()
            server.terminate()
            server.wait()

    def _wait(self, server: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + 180
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except ConnectionRefusedError:
                assert time.monotonic() < deadline and server.poll() is None
                time.sleep(0.02)


@pytest.fixture
def site(ssh_config, tmp_path):
    """Wants the sshd that the testbed installs, not the one that it runs."""
    return Site(tmp_path)


class TestHosts:
    def test_one_that_the_authority_signed_is_known(self, site):
        assert site.works()

    def test_a_key_that_is_known_by_itself_needs_no_authority(self, site):
        site.trust(f"[127.0.0.1]:{site.port}", "host")
        assert site.works()

    @pytest.mark.parametrize(
        "signature",
        [
            {"names": "other.example.com"},
            {"authority": "other"},
            {"options": ("-V", "20200101:20210101")},
            {"options": ("-V", "20900101:20910101")},
        ],
        ids=["another name", "another authority", "not any more", "not yet"],
    )
    def test_one_with_another_signature_is_not(self, site, signature):
        site.sign_host(*signature.pop("options", ()), **signature)
        with pytest.raises(TransportError, match="nor signed by an authority there"):
            site.works()

    def test_an_authority_for_other_hosts_does_not_count(self, site):
        site.trust("@cert-authority *.example.com", "authority")
        with pytest.raises(TransportError, match="is unknown"):
            site.works()

    def test_a_users_certificate_is_none_of_a_host(self, site):
        keygen("-s", site.folder / "authority", "-I", "a user", "-n", "127.0.0.1", site.folder / "host.pub")
        with pytest.raises(TransportError):
            site.works()


class TestUsers:
    def test_a_certificate_beside_the_key_is_shown(self, site):
        assert site.works()

    def test_it_may_be_named(self, site):
        site.sign_user("signed")
        with (site.folder / "config").open("a") as config:
            config.write(f"  CertificateFile {site.folder}/signed\n")
        assert site.works()

    def test_the_key_alone_is_refused(self, site):
        (site.folder / "user-cert.pub").unlink()
        with pytest.raises(TransportError, match="refused the login"):
            site.works()

    def test_a_certificate_of_another_key_is_left_out(self, site):
        keygen("-s", site.folder / "authority", "-I", "x", "-n", getuser(), site.folder / "other.pub")
        with (site.folder / "config").open("a") as config:
            config.write(f"  CertificateFile {site.folder}/other-cert.pub\n")
        assert site.works()
