"""How the endpoint is reached: proxy, certificates, open files. What the environment says is a parameter."""

import ipaddress
import logging
import resource
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from nemo_evaluator.errors import UsageError

logger = logging.getLogger(__name__)

SPARE_FILES = 32
"""Open files left for everything that is not a connection: journal, datasets, logs."""


def proxy_for(url: str, environ: Mapping[str, str]) -> str | None:
    """The proxy that HTTP(S)_PROXY and NO_PROXY choose for `url`; what runs on this machine never needs one."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxy = variable(environ, f"{parts.scheme}_proxy") or variable(environ, "all_proxy")
    if not proxy or is_loopback(host) or is_exempt(host, parts.port, variable(environ, "no_proxy") or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def variable(environ: Mapping[str, str], name: str) -> str | None:
    """The lower-case spelling wins, as in curl."""
    return environ.get(name) or environ.get(name.upper())


def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_exempt(host: str, port: int | None, no_proxy: str) -> bool:
    """NO_PROXY entries: `*`, a host or domain with or without leading dot, `host:port`, a network in CIDR form."""
    for entry in filter(None, (item.strip().lower() for item in no_proxy.split(","))):
        name = entry.removesuffix(f":{port}").lstrip("*").lstrip(".")
        if entry == "*" or host == name or host.endswith("." + name) or is_in_network(host, entry):
            return True
    return False


def is_in_network(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def tls_context(ca_bundle: str | None, environ: Mapping[str, str]) -> ssl.SSLContext:
    """Verification is never off; a private authority is trusted by naming its bundle."""
    chosen = ca_bundle or environ.get("SSL_CERT_FILE") or environ.get("REQUESTS_CA_BUNDLE")
    if not chosen:
        return ssl.create_default_context()
    path = Path(chosen).expanduser()
    try:
        if path.is_dir():
            return ssl.create_default_context(capath=str(path))
        return ssl.create_default_context(cafile=str(path))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f"The CA bundle {chosen} cannot be read ({error}). Name a PEM file of certificates."
        ) from error


def raise_open_files(connections: int) -> int:
    """Raises the soft limit of open files towards the hard one; returns how many connections fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = open_files() + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < connections + taken:
        soft = connections + taken if hard == resource.RLIM_INFINITY else min(hard, connections + taken)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= connections + taken:
        return connections
    fitting = max(1, soft - taken)
    logger.warning(
        "Only %d of %d parallel requests fit into the limit of %d open files; raise it with `ulimit -n`.",
        fitting,
        connections,
        soft,
    )
    return fitting


def open_files() -> int:
    listing = Path("/proc/self/fd")
    return sum(1 for _ in listing.iterdir()) if listing.exists() else SPARE_FILES
