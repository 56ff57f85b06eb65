"""Whether a server is the one it claims to be. Nothing is ever believed at first sight."""

import base64
import binascii
import fnmatch
import hashlib
import hmac
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import paramiko

from nemotron.transport.base import TransportError
from nemotron.transport.host_certificates import is_vouched_for
from nemotron.transport.ssh_config import SSH_PORT, Hop

SIGNATURES = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
"""Key type -> what is negotiated for it, where that is not its own name."""
CERTIFIED = "-cert-v01@openssh.com"
"""Ends the name of a key type that comes with a certificate."""
AUTHORITY, REVOKED = "@cert-authority", "@revoked"


@dataclass(frozen=True, slots=True)
class KnownKey:
    hosts: str
    """The first field: names, patterns or a hash."""
    type: str
    blob: bytes
    marker: str = ""
    """What else than a host's key it is."""

    def is_of(self, name: str) -> bool:
        if self.hosts.startswith("|1|"):
            return _is_hash_of(self.hosts, name)
        patterns = self.hosts.lower().split(",")
        if any(pattern.startswith("!") and _matches(name, pattern[1:]) for pattern in patterns):
            return False
        return any(_matches(name, pattern) for pattern in patterns)


def known_keys(hop: Hop) -> list[KnownKey]:
    """A server on another port may be known by its name alone, as for ssh."""
    entries = [entry for path in hop.known_hosts for entry in parse_known_hosts(_read(path))]
    for name in _names(hop):
        if found := [entry for entry in entries if entry.is_of(name)]:
            return found
    return []


def preferred_types(known: Sequence[KnownKey], offered: Sequence[str]) -> tuple[str, ...]:
    """The server picks the first type it has: one that can be checked should come before all others."""
    certified = [f"{name}{CERTIFIED}" for name in offered]
    types = [name for key in known if not key.marker for name in SIGNATURES.get(key.type, (key.type,))]
    if any(key.marker == AUTHORITY for key in known):
        types = [*certified, *types]
    first = [name for name in dict.fromkeys(types) if name in (*offered, *certified)]
    return (*first, *(name for name in (*offered, *certified) if name not in first))


def check(hop: Hop, known: Sequence[KnownKey], key: paramiko.PKey) -> None:
    blob, shown = key.asbytes(), f"{key.get_name()} {fingerprint(key.asbytes())}"
    if any(entry.blob == blob and entry.marker == REVOKED for entry in known):
        raise TransportError(f"{hop} shows a host key that is revoked in {_files(hop)}: {shown}. Ask who runs it.")
    trusted = [entry for entry in known if not entry.marker]
    authorities = {entry.blob for entry in known if entry.marker == AUTHORITY}
    if any(entry.blob == blob for entry in trusted):
        return
    if is_vouched_for(key, authorities, [(hop.key_name or hop.host).lower()], time.time()):
        return
    name = _names(hop)[0]
    if trusted:
        kept = ", ".join(f"{entry.type} {fingerprint(entry.blob)}" for entry in trusted)
        raise TransportError(
            f"{hop} shows another host key than the known one: {shown}, and known is {kept}. Somebody may be in the "
            f"middle. If its administrators changed it: `ssh-keygen -R '{name}'`, then add the new one."
        )
    unsigned = ", nor signed by an authority there," if authorities else ""
    raise TransportError(
        f"{hop} is unknown: its host key {shown} is not in {_files(hop)}{unsigned}. Compare it with what its "
        f"administrators publish, then add it: `{_add_command(hop, key.get_name())}`, or log in with `ssh {hop}` once."
    )


def fingerprint(blob: bytes) -> str:
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def parse_known_hosts(text: str) -> Iterator[KnownKey]:
    """Lines that are no keys are passed over: they only make a host less known."""
    for line in text.splitlines():
        fields = line.split()
        marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
        if len(fields) < 3 or fields[0].startswith("#"):
            continue
        try:
            yield KnownKey(fields[0], fields[1], base64.b64decode(fields[2], validate=True), marker)
        except binascii.Error:
            continue


def _read(path: Path) -> str:
    """Nothing where it cannot be read, as by ssh."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _names(hop: Hop) -> list[str]:
    if hop.key_name is not None:
        return [hop.key_name.lower()]
    host = hop.host.lower()
    return [host] if hop.port == SSH_PORT else [f"[{host}]:{hop.port}", host]


def _matches(name: str, pattern: str) -> bool:
    """`*` and `?` alone are special; brackets belong to names with a port."""
    return fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


def _is_hash_of(field: str, name: str) -> bool:
    try:
        salt, expected = (base64.b64decode(part) for part in field.split("|")[2:4])
    except ValueError:
        return False
    return hmac.compare_digest(hmac.new(salt, name.encode(), "sha1").digest(), expected)


def _files(hop: Hop) -> str:
    return " or ".join(str(path) for path in hop.known_hosts[:1]) or "any known_hosts file"


def _add_command(hop: Hop, key_type: str) -> str:
    short = key_type.removeprefix("ssh-").split("-")[0]
    port = "" if hop.port == SSH_PORT else f"-p {hop.port} "
    there = f"ssh {hop.behind} " if hop.behind else ""
    file = hop.known_hosts[0] if hop.known_hosts else Path("~/.ssh/known_hosts")
    return f"{there}ssh-keyscan {port}-t {short} {hop.host} >> {file}"
