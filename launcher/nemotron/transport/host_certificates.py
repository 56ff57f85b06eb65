"""Host keys that a known authority has signed: `@cert-authority` in known_hosts, as large sites have it."""

import base64
from collections.abc import Collection, Sequence

import paramiko
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.hazmat.primitives.serialization.ssh import (
    SSHCertificate,
    SSHCertificateType,
    load_ssh_public_identity,
)


def is_vouched_for(key: paramiko.PKey, authorities: Collection[bytes], names: Sequence[str], now: float) -> bool:
    """Whether one of the authorities has signed that `key` belongs to a host of one of these names, until later."""
    certificate = _certificate(key)
    if certificate is None or certificate.type is not SSHCertificateType.HOST or certificate.critical_options:
        return False
    principals = {name.decode("utf-8", "replace").lower() for name in certificate.valid_principals}
    return (
        _blob(certificate.signature_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)) in authorities
        and certificate.valid_after <= now < certificate.valid_before
        and (not principals or not principals.isdisjoint(names))
        and _is_signed(certificate)
    )


def _certificate(key: paramiko.PKey) -> SSHCertificate | None:
    """What the server has shown, if it is not a mere key."""
    shown = key.public_blob
    if shown is None:
        return None
    try:
        identity = load_ssh_public_identity(f"{shown.key_type} {_text(shown.key_blob)}".encode())
    except ValueError:
        return None
    return identity if isinstance(identity, SSHCertificate) else None


def _is_signed(certificate: SSHCertificate) -> bool:
    try:
        certificate.verify_cert_signature()
    except InvalidSignature:
        return False
    return True


def _blob(line: bytes) -> bytes:
    return base64.b64decode(line.split()[1])


def _text(blob: bytes) -> str:
    return base64.b64encode(blob).decode()
