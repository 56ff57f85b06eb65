"""Logging in with keys alone. Nothing is ever asked: a run has nobody who could answer."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.hazmat.primitives.serialization.ssh import SSHCertificate, load_ssh_public_identity
from paramiko.agent import AgentSSH

from nemotron.transport.base import TransportError
from nemotron.transport.known_hosts import fingerprint
from nemotron.transport.ssh_config import DEFAULT_IDENTITIES, Hop

TOUCHED = "sk-"
"""Begins the name of keys in a device that wants to be touched for each login."""


def log_in(transport: paramiko.Transport, hop: Hop) -> None:
    attempt = _Attempt(transport, hop)
    if attempt.needs_nothing() or not attempt.may("publickey"):
        return attempt.finish()
    with _Agent(hop.agent) as agent:
        for name, key in _keys(hop, agent.get_keys(), attempt.unusable):
            if attempt.offer(name, key):
                break
    return attempt.finish()


@dataclass(slots=True)
class _Attempt:
    transport: paramiko.Transport
    hop: Hop
    allowed: list[str] = field(default_factory=list)
    """Ways in that the server still names."""
    refused: list[str] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)
    accepted: str | None = None
    """The key that was taken, though the server wants more."""

    def needs_nothing(self) -> bool:
        try:
            self.transport.auth_none(self.hop.user)
        except paramiko.BadAuthenticationType as error:
            self.allowed = list(error.allowed_types)
        return self.transport.is_authenticated()

    def may(self, way: str) -> bool:
        return way in self.allowed

    def offer(self, name: str, key: paramiko.PKey) -> bool:
        """Whether there is nothing more to try."""
        try:
            more = self.transport.auth_publickey(self.hop.user, key)
        except paramiko.AuthenticationException as error:
            self.refused.append(f"{name} ({key.get_name()} {fingerprint(key.asbytes())})")
            if isinstance(error, paramiko.BadAuthenticationType):
                self.allowed = list(error.allowed_types)
            return not self.may("publickey") or not self.transport.is_active()
        if more:
            self.accepted, self.allowed = name, list(more)
        return True

    def finish(self) -> None:
        if self.transport.is_authenticated():
            return
        if self.accepted:
            raise TransportError(
                f"{self.hop} takes the key {self.accepted} and wants {' or '.join(self.allowed)} too, which needs a "
                f"person. {share_a_login(self.hop)}"
            )
        tried = ", ".join([*self.refused, *self.unusable]) or "no key, as there is none"
        advice = "Add your key there with `ssh-copy-id`, or load it with `ssh-add`."
        if not self.may("publickey") and not self.refused:
            tried, advice = "no key, as it takes none", share_a_login(self.hop)
        raise TransportError(
            f"{self.hop} refused the login. It takes {', '.join(self.allowed) or 'nothing'}; tried: {tried}. {advice}"
        )


def share_a_login(hop: Hop) -> str:
    return (
        f"Set ControlMaster auto, ControlPath and ControlPersist for {hop.name} in ssh's configuration and log in with "
        f"`ssh {hop.name}` once: its connection is then used here."
    )


class _Agent(AgentSSH):
    """The agent that this hop is told to use, which need not be the process's own."""

    def __init__(self, path: str | None) -> None:
        super().__init__()
        self._socket: socket.socket | None = None
        if path is None:
            return
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(10)
        try:
            self._socket.connect(path)
            self._connect(self._socket)  # type: ignore[attr-defined]
        except (OSError, paramiko.SSHException):
            self._socket.close()

    def __enter__(self) -> "_Agent":
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()


def _keys(hop: Hop, held: tuple[paramiko.AgentKey, ...], unusable: list[str]) -> Iterator[tuple[str, paramiko.PKey]]:
    """Those the configuration names first, by the agent where it holds them; then the agent's others."""
    by_blob = {key.asbytes(): key for key in held if not key.get_name().startswith(TOUCHED)}
    for path in hop.identities:
        key = by_blob.pop(_public_part(path), None) or _load(path, hop)
        if isinstance(key, paramiko.PKey):
            by_blob.pop(key.asbytes(), None)
            yield str(path), key
        elif key is not None:
            unusable.append(key)
    if not hop.only_identities:
        yield from ((f"{key.comment or 'a key'} of the agent", key) for key in by_blob.values())


def _public_part(path: Path) -> bytes:
    """Nothing where it is not beside the key."""
    public = path if path.suffix == ".pub" else path.with_name(path.name + ".pub")
    try:
        return paramiko.pkey.PublicBlob.from_file(str(public)).key_blob
    except (OSError, ValueError):
        return b""


def _load(path: Path, hop: Hop) -> paramiko.PKey | str | None:
    """A key, or why there is none; None for the many default files that nobody has."""
    try:
        key = paramiko.PKey.from_path(path)
    except FileNotFoundError:
        return None if path.name in DEFAULT_IDENTITIES else f"{path} (not there)"
    except TypeError:
        return f"{path} (encrypted, and not in an agent: `ssh-add {path}`)"
    except (OSError, ValueError, UnsupportedAlgorithm, paramiko.SSHException, paramiko.pkey.UnknownKeyType) as error:
        return f"{path} (unusable: {error})"
    for certificate in hop.certificates:
        if _is_for(certificate, key):
            key.load_certificate(str(certificate))
    return key


def _is_for(certificate: Path, key: paramiko.PKey) -> bool:
    try:
        found = load_ssh_public_identity(certificate.read_bytes())
    except (OSError, ValueError, UnsupportedAlgorithm):
        return False
    if not isinstance(found, SSHCertificate):
        return False
    public = found.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return public.split()[1].decode() == key.get_base64()
