"""A fake OCI registry for the flows that a real one cannot be made to show: odd challenges, limits, redirects.

    with FakeRegistry() as registry:
        registry.push("team/harness", "1.0", layers=[layer({"etc/hostname": "box"})])
        ...; registry.requests, registry.count("HEAD")

What a well-behaved registry does is tested on the real one of the testbed.
"""

import base64
import gzip
import hashlib
import io
import itertools
import json
import ssl
import tarfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qs, urlsplit

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CHUNK = 1 << 18
GATE_SECONDS = 300
LAYER = "application/vnd.oci.image.layer.v1.tar"


class Call(NamedTuple):
    method: str
    path: str
    authorization: str | None
    form: Mapping[str, str] = {}


@dataclass
class Rules:
    """How this registry differs from a friendly one."""

    auth: Literal["none", "basic", "bearer"] = "none"
    login: tuple[str, str] | None = None
    """Who may ask; None lets anybody have a token."""
    challenge: str = 'Bearer realm="{realm}",service="{service}",scope="repository:{repository}:pull"'
    realms: Sequence[str] = ("/token",)
    """Paths, or whole URLs, named in turn."""
    token_field: str = "token"
    token_uses: int | None = None
    """Requests after which a token has expired."""
    expires_in: float | None = None
    refuses_head: int | None = None
    omits_digest: bool = False
    lies: bool = False
    """Sends another body than the digest says."""
    busy_after: int | None = None
    busy_for: int = 10**6
    """How many requests are then answered with 429."""
    retry_after: str | None = None
    blobs_at: str | None = None
    """Root URL of another host that blobs are fetched from."""
    breaks_after: int | None = None
    """Bytes of a blob after which the connection is gone."""
    ignores_range: bool = False
    damaged_blobs: int = 0
    """How many answers to come have wrong bytes."""
    gate: threading.Event | None = None
    """Blobs are sent when it is set."""


@dataclass
class Image:
    index: bytes
    manifests: dict[str, bytes] = field(default_factory=dict)
    """By platform."""

    @property
    def index_digest(self) -> str:
        return digest(self.index)

    def platform_digest(self, platform: str = "linux/amd64") -> str:
        return digest(self.manifests[platform])


class FakeRegistry:
    def __init__(self, tls: ssl.SSLContext | None = None, **rules: Any) -> None:
        self.rules = Rules(**rules)
        self.requests: list[Call] = []
        self.bytes_sent = 0
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[tuple[str, str], tuple[str, bytes]] = {}
        self.tokens: dict[str, int] = {}
        self._realms = itertools.cycle(self.rules.realms)
        self._numbers = itertools.count(1)
        registry = self

        class Handler(_Handler):
            fake = registry

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._scheme = "https" if tls else "http"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> "FakeRegistry":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    @property
    def root(self) -> str:
        return f"{self._scheme}://{self.host}"

    def push(
        self,
        repository: str,
        tag: str,
        layers: Sequence[bytes] = (),
        platforms: Sequence[str] = ("linux/amd64",),
        config: Mapping[str, Any] | bytes | None = None,
    ) -> Image:
        """An index of one manifest a platform, and an entry that is no platform, as builders add them.

        The config is how to start the image, or bytes in its place.
        """
        made = {platform: self._push_manifest(repository, platform, layers, config) for platform in platforms}
        entries = [_entry(body, platform) for platform, body in made.items()]
        attestation = _entry(self._push_manifest(repository, "unknown/unknown", ()), "unknown/unknown")
        index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": [attestation, *entries]}).encode()
        for name in tag, digest(index):
            self.manifests[repository, name] = INDEX, index
        return Image(index, made)

    def push_single(self, repository: str, tag: str, layers: Sequence[bytes] = ()) -> str:
        """A tag that names a manifest with no index around it; its digest."""
        body = self._push_manifest(repository, "linux/amd64", layers)
        self.manifests[repository, tag] = MANIFEST, body
        return digest(body)

    def _push_manifest(
        self, repository: str, platform: str, layers: Sequence[bytes], said: Mapping[str, Any] | bytes | None = None
    ) -> bytes:
        config = said if isinstance(said, bytes) else json.dumps({"platform": platform, "config": said}).encode()
        self.blobs[digest(config)] = config
        self.blobs |= {digest(layer): layer for layer in layers}
        body = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": {"digest": digest(config), "mediaType": "application/json", "size": len(config)},
                "layers": [{"digest": digest(blob), "mediaType": LAYER, "size": len(blob)} for blob in layers],
            }
        ).encode()
        self.manifests[repository, digest(body)] = MANIFEST, body
        return body

    def count(self, method: str, part: str = "/manifests/") -> int:
        return sum(call.method == method and part in call.path for call in self.requests)

    def blob_bytes_asked(self) -> list[str]:
        return [call.path.rpartition("/")[2] for call in self.requests if "/blobs/" in call.path]

    # What is answered

    def is_busy(self) -> bool:
        asked = sum("/v2/" in call.path and call.path != "/v2/" for call in self.requests)
        after = self.rules.busy_after
        return after is not None and after < asked <= after + self.rules.busy_for

    def issue(self) -> dict[str, Any]:
        token = f"fake-token-{next(self._numbers)}"
        self.tokens[token] = 0
        expires = {} if self.rules.expires_in is None else {"expires_in": self.rules.expires_in}
        return {self.rules.token_field: token, **expires}

    def admits(self, authorization: str | None) -> bool:
        scheme, _, value = (authorization or "").partition(" ")
        match self.rules.auth:
            case "none":
                return True
            case "basic":
                return scheme == "Basic" and self.knows(value)
            case "bearer":
                if scheme != "Bearer" or value not in self.tokens:
                    return False
                self.tokens[value] += 1
                return self.rules.token_uses is None or self.tokens[value] <= self.rules.token_uses

    def knows(self, encoded: str) -> bool:
        return self.rules.login is None or base64.b64decode(encoded).decode() == ":".join(self.rules.login)

    def challenge(self, repository: str) -> str:
        if self.rules.auth == "basic":
            return 'Basic realm="fake"'
        realm = next(self._realms)
        realm = realm if "://" in realm else self.root + realm
        return self.rules.challenge.format(realm=realm, service=self.host, repository=repository)


class _Handler(BaseHTTPRequestHandler):
    fake: FakeRegistry
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None: ...

    def do_HEAD(self) -> None:
        self.handle_call({})

    def do_GET(self) -> None:
        self.handle_call({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.handle_call({name: values[0] for name, values in parse_qs(body).items()})

    def handle_call(self, form: Mapping[str, str]) -> None:
        path = urlsplit(self.path).path
        authorization = self.headers.get("Authorization")
        self.fake.requests.append(Call(self.command, self.path, authorization, form))
        if path == "/v2/":
            self.answer(200)
        elif not path.startswith("/v2/"):
            self.give_token(authorization, form)
        elif self.fake.is_busy():
            wait = self.fake.rules.retry_after
            self.answer(429, headers={"Retry-After": wait} if wait else {})
        elif not self.fake.admits(authorization):
            repository = path.removeprefix("/v2/").rsplit("/", 2)[0]
            self.answer(401, headers={"WWW-Authenticate": self.fake.challenge(repository)})
        else:
            self.give_content(*path.removeprefix("/v2/").rsplit("/", 2))

    def give_token(self, authorization: str | None, form: Mapping[str, str]) -> None:
        allowed = self.fake.rules.login is None or "refresh_token" in form
        if not allowed and authorization:
            allowed = self.fake.knows(authorization.removeprefix("Basic "))
        self.answer(200 if allowed else 401, json.dumps(self.fake.issue() if allowed else {}).encode())

    def give_content(self, repository: str, kind: str, name: str) -> None:
        rules = self.fake.rules
        if self.command == "HEAD" and rules.refuses_head:
            self.answer(rules.refuses_head)
        elif kind == "blobs" and rules.blobs_at:
            self.answer(307, headers={"Location": f"{rules.blobs_at}{self.path}"})
        elif kind == "blobs" and name in self.fake.blobs:
            self.give_blob(self.fake.blobs[name])
        elif kind == "blobs":
            self.answer(404)
        elif found := self.fake.manifests.get((repository, name)):
            media_type, body = found
            headers = {} if rules.omits_digest else {"Docker-Content-Digest": digest(body)}
            self.answer(200, body + b" " * rules.lies, {"Content-Type": media_type, **headers})
        else:
            self.answer(404)

    def give_blob(self, body: bytes) -> None:
        rules = self.fake.rules
        if rules.gate and not rules.gate.wait(GATE_SECONDS):
            raise TimeoutError("nobody opened the gate")
        start = 0 if rules.ignores_range else int(self.headers.get("Range", "bytes=0-")[6:-1])
        if rules.damaged_blobs:
            rules.damaged_blobs -= 1
            body = bytes(len(body))
        self.answer(206 if start else 200, body[start:], breaks_after=rules.breaks_after)

    def answer(
        self,
        status: int,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        breaks_after: int | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.send_body(body[:breaks_after])
        if breaks_after is not None and breaks_after < len(body):
            self.close_connection = True

    def send_body(self, body: bytes) -> None:
        try:
            for start in range(0, len(body), CHUNK):
                self.fake.bytes_sent += self.wfile.write(body[start : start + CHUNK])
        except ConnectionError:  # the client had enough
            self.close_connection = True


def layer(files: Mapping[str, str | bytes], compress: Any = gzip.compress) -> bytes:
    """A layer of these files, in this order."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return bytes(compress(buffer.getvalue()))


def digest(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def _entry(body: bytes, platform: str) -> dict[str, Any]:
    system, architecture, *variant = platform.split("/")
    return {
        "mediaType": MANIFEST,
        "digest": digest(body),
        "size": len(body),
        "platform": {"os": system, "architecture": architecture} | ({"variant": variant[0]} if variant else {}),
    }
