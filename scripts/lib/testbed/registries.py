"""Two real registries over one storage, and the token service of the second: `python registries.py STATE STORAGE`.

The first lets anybody do anything; push there. The second gives nothing without a Bearer token from the service, which
lets anybody pull from `public/` and LOGIN pull everything. Addresses go to STATE/addresses once all ports are known.
"""

import base64
import datetime
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.x509.oid import NameOID

LOGIN = "tester:not-a-real-password"
SERVICE, ISSUER = "testbed", "testbed-tokens"
PORTS = 5000, 5001, 5002
TOKEN_SECONDS = 60

CONFIG = """\
version: 0.1
log: {{level: warn}}
storage:
  filesystem: {{rootdirectory: {storage}}}
  delete: {{enabled: true}}
http: {{addr: "127.0.0.1:{port}"}}
"""
TOKEN_AUTH = """\
auth:
  token: {{realm: "http://127.0.0.1:{port}/token", service: {service}, issuer: {issuer}, rootcertbundle: {bundle}}}
"""


def main(state: Path, storage: Path) -> None:
    anonymous, protected, tokens = (free_port(port) for port in PORTS)
    signer = Signer()
    (state / "tokens.pem").write_bytes(signer.certificate)
    config = CONFIG.format(storage=storage, port=protected) + TOKEN_AUTH.format(
        port=tokens, service=SERVICE, issuer=ISSUER, bundle=state / "tokens.pem"
    )
    children = [
        serve(state / "anonymous.yml", CONFIG.format(storage=storage, port=anonymous)),
        serve(state / "protected.yml", config),
    ]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})  # not earlier: children inherit it
    service = ThreadingHTTPServer(("127.0.0.1", tokens), type("Handler", (TokenHandler,), {"signer": signer}))
    threading.Thread(target=service.serve_forever, daemon=True).start()
    (state / "addresses").write_text(f"127.0.0.1:{anonymous} 127.0.0.1:{protected}\n")
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    for child in children:
        child.terminate()
    for child in children:
        child.wait()


def serve(path: Path, config: str) -> subprocess.Popen[bytes]:
    path.write_text(config)
    return subprocess.Popen(["docker-registry", "serve", path])


def free_port(wanted: int) -> int:
    """The wanted port, or any when somebody has it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Signer:
    """A key of this session, and the certificate by which the registry knows it."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, ISSUER)])
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(self._key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(days=1))
        builder = builder.not_valid_after(now + datetime.timedelta(days=30))
        self._made = builder.sign(self._key, hashes.SHA256())
        self.certificate = self._made.public_bytes(serialization.Encoding.PEM)

    def token(self, claims: dict[str, object]) -> str:
        der = self._made.public_bytes(serialization.Encoding.DER)
        header = {"typ": "JWT", "alg": "ES256", "x5c": [base64.b64encode(der).decode()]}
        signed = f"{encoded(json.dumps(header).encode())}.{encoded(json.dumps(claims).encode())}"
        r, s = utils.decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


class TokenHandler(BaseHTTPRequestHandler):
    signer: Signer

    def do_GET(self) -> None:
        authorization = self.headers.get("Authorization")
        if authorization not in (None, f"Basic {base64.b64encode(LOGIN.encode()).decode()}"):
            self.reply(401, {"details": "no such login"})
            return
        scopes = parse_qs(urlsplit(self.path).query).get("scope", [])
        now = int(time.time())
        claims = {
            **{"iss": ISSUER, "sub": "tester" if authorization else "", "aud": SERVICE, "jti": str(time.time_ns())},
            **{"iat": now, "nbf": now - 10, "exp": now + TOKEN_SECONDS},
            "access": [granted for scope in scopes if (granted := grant(scope, is_known=authorization is not None))],
        }
        self.reply(200, {"token": self.signer.token(claims), "expires_in": TOKEN_SECONDS})

    def reply(self, status: int, content: dict[str, object]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def grant(scope: str, *, is_known: bool) -> dict[str, object] | None:
    kind, _, rest = scope.partition(":")
    name, _, actions = rest.rpartition(":")
    allowed = [action for action in actions.split(",") if action == "pull"]
    return {"type": kind, "name": name, "actions": allowed} if is_known or name.startswith("public/") else None


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
