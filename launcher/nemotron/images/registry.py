"""Ask any OCI registry what a name stands for, and read an image's layers; no container engine needed."""

import json
import os
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    wait_exponential,
)
from tenacity.stop import stop_base

from nemotron.errors import UsageError
from nemotron.files import write_bytes
from nemotron.images.authorization import NotAuthorized, RegistryAuth
from nemotron.images.credentials import Keyring
from nemotron.images.manifests import (
    ACCEPT,
    INDEXES,
    MANIFESTS,
    ImageNotFound,
    Layer,
    Manifest,
    RegistryUnreachable,
    choose,
    digest_of,
    manifest_of,
    parsed,
)
from nemotron.images.reference import DEFAULT_REGISTRY, Reference

PLATFORM = "linux/amd64"
INSECURE_REGISTRIES = "NEMOTRON_INSECURE_REGISTRIES"
"""Hosts, with their ports and commas between them, that may be spoken to without TLS."""

CONTENT_DIGEST = "Docker-Content-Digest"

ATTEMPTS = 4
LONGEST_WAIT_SECONDS = 60.0
"""A registry that asks for more patience than this is reported instead."""
BUSY = (429, 502, 503, 504)
NOT_FOUND = (404,)
PARTIAL = 206
HEAD_IS_FINAL = (401, 403, 404, *BUSY)
"""Refusals that a GET would meet too; any other answer to a HEAD says only that HEAD is not understood."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a name stood for when it was asked."""

    reference: Reference
    index_digest: str | None
    """Of the list of platforms, which is what most tools show for a tag; None where a tag names one platform."""
    platform_digest: str | None
    """Of the one manifest that is run, which is what engines report."""
    size: int | None
    """Bytes to download; None for a pinned name, about which nobody was asked."""

    @property
    def digest(self) -> str:
        """The one to pin by, and to record."""
        digest = self.reference.digest or self.index_digest or self.platform_digest
        assert digest is not None
        return digest

    @property
    def pinned(self) -> Reference:
        return self.reference.pinned(self.digest)


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """What is the user's to say about registries; `of(environ)` reads it."""

    keyring: Keyring = field(default_factory=Keyring)
    insecure: frozenset[str] = frozenset()
    certificates: Path | None = None
    """Bundle to trust in the place of the system's."""
    cache: Path | None = None
    """Manifests by digest: what has a digest never changes, so a repeated question costs one HEAD."""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "RegistrySettings":
        bundle = environ.get("SSL_CERT_FILE") or environ.get("REQUESTS_CA_BUNDLE")
        insecure = environ.get(INSECURE_REGISTRIES, "").split(",")
        cache = Path(environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", "/tmp")) / ".cache")
        return cls(
            Keyring.load(environ),
            frozenset(host.strip() for host in insecure if host.strip()),
            Path(bundle) if bundle else None,
            cache / "nemotron/images",
        )


class Registry:
    """One client for all registries; `with Registry(RegistrySettings.of(os.environ)) as registry: ...`."""

    def __init__(
        self,
        settings: RegistrySettings | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings or RegistrySettings()
        self.sleep, self._clock = sleep, clock
        self._client = httpx.Client(
            verify=_trust(self.settings.certificates), follow_redirects=True, timeout=httpx.Timeout(30, connect=10)
        )
        self._auths: dict[tuple[str, str], RegistryAuth] = {}
        self._schemes: dict[str, str] = {}

    def resolve(self, reference: Reference, platform: str = PLATFORM) -> Resolved:
        """The digests behind a name. A pinned name is its own answer, without a look at the registry."""
        if reference.is_pinned:
            return Resolved(reference, None, None, None)
        digest, media_type = self._head(reference)
        manifest = self.manifest(reference.pinned(digest), platform)
        return Resolved(reference, digest if media_type in INDEXES else None, manifest.digest, manifest.size)

    def manifest(self, reference: Reference, platform: str = PLATFORM) -> Manifest:
        """Of one platform, by way of the index if there is one."""
        digest, content = self._content(reference)
        if "manifests" in content:
            digest = choose(content["manifests"], platform, reference)
            digest, content = self._content(reference.pinned(digest))
        return manifest_of(digest, content, reference)

    @contextmanager
    def layer(self, reference: Reference, layer: Layer, start: int = 0) -> Iterator[Iterator[bytes]]:
        """The layer's bytes from `start` on, as they come; what is not read is not downloaded."""
        url = self._url(reference, f"blobs/{layer.digest}")
        headers = {"Range": f"bytes={start}-"} if start else {}
        response = self._send(self._client.build_request("GET", url, headers=headers), reference, stream=True)
        try:
            _check(response, reference)
            chunks = _chunks(response, layer.digest)
            yield chunks if response.status_code == PARTIAL else _without_first(chunks, start)
        finally:
            response.close()

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def _head(self, reference: Reference) -> tuple[str, str]:
        """Digest and media type of what a tag names: by HEAD, which counts as no pull; by GET where that is refused."""
        url = self._url(reference, f"manifests/{reference.tag}")
        response = self._send(self._client.build_request("HEAD", url, headers={"Accept": ACCEPT}), reference)
        if response.status_code in HEAD_IS_FINAL:
            _check(response, reference)
        digest = response.headers.get(CONTENT_DIGEST)
        if not response.is_success or not digest:
            digest, content = self._fetch(reference)
            return digest, str(content.get("mediaType") or (INDEXES if "manifests" in content else MANIFESTS)[0])
        return digest, response.headers.get("Content-Type", "").partition(";")[0]

    def _content(self, reference: Reference) -> tuple[str, dict[str, Any]]:
        """A manifest or an index; by its digest it is read once and then from the cache."""
        path = self._cached(reference.digest) if reference.digest else None
        if path is not None and path.is_file() and digest_of(body := path.read_bytes()) == reference.digest:
            return reference.digest, json.loads(body)
        return self._fetch(reference)

    def _fetch(self, reference: Reference) -> tuple[str, dict[str, Any]]:
        url = self._url(reference, f"manifests/{reference.digest or reference.tag}")
        response = self._send(self._client.build_request("GET", url, headers={"Accept": ACCEPT}), reference)
        _check(response, reference)
        body = response.content
        digest = digest_of(body)
        if digest != (reference.digest or response.headers.get(CONTENT_DIGEST, digest)):
            raise RegistryUnreachable(
                f"{reference}: what {reference.registry} sent is not what its digest says: try again."
            )
        content = parsed(body, reference)
        self._keep(digest, body)
        return digest, content

    def _cached(self, digest: str) -> Path | None:
        return self.settings.cache / "manifests" / digest.replace(":", "-") if self.settings.cache else None

    def _keep(self, digest: str, body: bytes) -> None:
        """A cache that cannot be written is no reason to stop."""
        if (path := self._cached(digest)) is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, body)
        except OSError:
            return

    def _url(self, reference: Reference, rest: str) -> str:
        host = f"registry-1.{DEFAULT_REGISTRY}" if reference.registry == DEFAULT_REGISTRY else reference.registry
        return f"{self._scheme(host)}://{host}/v2/{reference.repository}/{rest}"

    def _scheme(self, host: str) -> str:
        """https; where plain http is allowed it is what a host speaks that does not speak TLS."""
        if not (host in self.settings.insecure or is_loopback(host)):
            return "https"
        if host not in self._schemes:
            try:
                self._client.get(f"https://{host}/v2/", follow_redirects=False)
                self._schemes[host] = "https"
            except httpx.TransportError:
                self._schemes[host] = "http"
        return self._schemes[host]

    def _send(self, request: httpx.Request, reference: Reference, *, stream: bool = False) -> httpx.Response:
        """Asks again when the registry is busy, as late as it wishes."""
        retrying = Retrying(
            stop=stop_after_attempt(ATTEMPTS) | stop_at_impatience(),
            wait=_wait,
            retry=retry_if_result(_is_busy) | retry_if_exception_type(httpx.TransportError),
            sleep=self.sleep,
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
        )
        auth = self._auth(reference)
        try:
            response: httpx.Response = retrying(self._ask, request, auth, stream)
        except httpx.TransportError as error:
            raise RegistryUnreachable(
                f"{reference}: {reference.registry} cannot be reached ({error}): check the name and the network."
            ) from None
        except httpx.TooManyRedirects:
            raise RegistryUnreachable(f"{reference}: {reference.registry} only redirects: check the name.") from None
        return response

    def _ask(self, request: httpx.Request, auth: RegistryAuth, stream: bool) -> httpx.Response:
        response = self._client.send(request, auth=auth, stream=stream)
        if not response.is_success:
            response.read()
        return response

    def _auth(self, reference: Reference) -> RegistryAuth:
        key = reference.registry, reference.repository
        if key not in self._auths:
            credential = self.settings.keyring.credential_for(reference)
            self._auths[key] = RegistryAuth(credential, reference.repository, self._clock)
        return self._auths[key]


class stop_at_impatience(stop_base):
    """A registry that asks for more than a minute is not waited for."""

    def __call__(self, retry_state: RetryCallState) -> bool:
        return _asked_wait(retry_state) > LONGEST_WAIT_SECONDS


def is_loopback(host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return name == "localhost"


def _trust(certificates: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=os.fspath(certificates) if certificates else None)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{certificates} is no bundle of certificates ({error}): mend SSL_CERT_FILE.") from None


def _is_busy(response: httpx.Response) -> bool:
    return response.status_code in BUSY


def _asked_wait(state: RetryCallState) -> float:
    """Seconds that the registry named in Retry-After."""
    if state.outcome is None or state.outcome.failed:
        return 0.0
    headers = state.outcome.result().headers
    text = headers.get("Retry-After", "")
    if text.isdigit():
        return float(text)
    try:
        until = parsedate_to_datetime(text)
        now = parsedate_to_datetime(headers["Date"]) if "Date" in headers else datetime.now(UTC)
        return max((until - now).total_seconds(), 0.0)
    except (ValueError, TypeError):  # no such header, or one that makes no sense
        return 0.0


def _wait(state: RetryCallState) -> float:
    return max(_asked_wait(state), wait_exponential(multiplier=0.5, max=8)(state))


def _check(response: httpx.Response, reference: Reference) -> None:
    """Raises for anything but success, saying what to do about it."""
    host, status = reference.registry, response.status_code
    if response.is_success:
        return
    if status in (401, 403):
        raise NotAuthorized(
            f"{reference}: {host} does not show it to you ({status}): log in with `docker login {host}`"
            + (" (user $oauthtoken, the API key as password)" if host == "nvcr.io" else "")
            + ", and check the name."
        )
    if status in NOT_FOUND:
        raise ImageNotFound(f"{reference}: {host} has no such image: check repository, tag and spelling.")
    if status == 429:
        wait = response.headers.get("Retry-After")
        raise RegistryUnreachable(
            f"{reference}: {host} counts too many requests"
            + (f" and asks for {wait} s of patience" if wait else "")
            + ": log in for a higher limit, or name the image by its digest, which needs no request."
        )
    raise RegistryUnreachable(f"{reference}: {host} answers with status {status}: try again later.")


def _chunks(response: httpx.Response, digest: str) -> Iterator[bytes]:
    try:
        yield from response.iter_raw()
    except httpx.TransportError as error:
        raise RegistryUnreachable(f"the download of layer {digest} broke off ({error}): run it again.") from None


def _without_first(chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """For a registry that sends all when asked for the rest."""
    for chunk in chunks:
        yield chunk[size:]
        size = max(size - len(chunk), 0)
