"""How far a request for the endpoint's models got, from where a job will run."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from nemotron.doctor.facts import Facts
from nemotron.doctor.finding import Finding, fail, ok, warn
from nemotron.secrets import redact_url

LOOPBACK = ("localhost", "127.0.0.1", "::1")
LOADING = (502, 503, 504)
STAGES = {
    "name": ("does not know the name of", "use a name or an address that is known there"),
    "connection": (
        "gets no connection to",
        "start the server with --host 0.0.0.0, and open its port to the nodes",
    ),
    "tls": ("does not trust", "set SSL_CERT_FILE in env_vars to the site's certificates"),
    "http": ("gets no answer from", "see the proxy variables there, and the server's log"),
}


def endpoint_findings(model: Mapping[str, Any], facts: Facts, *, is_here: bool) -> Iterator[Finding]:
    reached = facts.endpoint
    assert reached is not None
    url = model["endpoint_url"]
    shown = redact_url(url) if url else f"the URL in {model['endpoint_url_variable']}"
    if reached.stage in STAGES:
        flaw, action = STAGES[reached.stage]
        if not is_here and _is_loopback(url):
            action = f"{facts.host} would have to serve it itself: set EVAL_ENDPOINT_URL to the server's own host name"
        yield fail(f"{facts.host} {flaw} {shown} ({reached.said})", action, f"endpoint-{reached.stage}")
    elif reached.status in (401, 403):
        key = model["api_key_name"]
        action = f"put a valid token into {key}" if key else "name the variable with the token with EVAL_API_KEY_NAME"
        what = f"{shown} refuses {facts.host}: HTTP {reached.status}, {reached.said}"
        yield fail(what.rstrip(", "), action, "endpoint-refused")
    elif reached.status in LOADING:
        yield warn(
            f"{shown} is not ready, HTTP {reached.status}", "see whether its model is still loading", "endpoint-loading"
        )
    else:
        yield ok(f"{facts.host} reaches {shown}: HTTP {reached.status}")
        yield from _served(model["id"], reached.models)


def _served(model: str, served: tuple[str, ...]) -> Iterator[Finding]:
    """Some servers have no list."""
    if served and model not in served:
        near = get_close_matches(model, served, n=1, cutoff=0.4)
        action = f"set EVAL_MODEL_HANDLE to {near[0] if near else ' or '.join(served[:5])}"
        yield fail(f"The endpoint does not serve {model!r}", action, "endpoint-model")


def _is_loopback(url: str | None) -> bool:
    return url is not None and urlsplit(url).hostname in LOOPBACK
