"""A loopback address in place of an endpoint URL that is itself a secret.

A harness writes its URL into run_config.yml, its log and the command line of what it calls. So it is given the address
of this relay, which adds userinfo and query to what it passes on. The path holds a random word: other users of the
machine do not get to the endpoint through it.
"""

from __future__ import annotations

import secrets
import threading
import urllib.error
import urllib.request
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import urlsplit

from nemo_evaluator.direct.environment import LOOPBACK
from nemo_evaluator.direct.probe import NoRedirects, basic_authorization, without_userinfo

PASSED_ON = ("Content-Type", "Authorization", "Accept", "User-Agent")
PASSED_BACK = ("Content-Type", "Retry-After", "Date")
SLOWEST_SECONDS = 24 * 3600.0
"""The harness has a time limit of its own for every request; this one only ends what it forgot."""


class Relay:
    """Serves while the context is open."""

    def __init__(self, url: str) -> None:
        word = secrets.token_hex(16)
        self._server = _Server(url, f"/{word}{urlsplit(url).path}")
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}{self._server.path}"

    def __enter__(self) -> Relay:
        threading.Thread(target=self._server.serve_forever, name="relay", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, url: str, path: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.path = path
        self.target = without_userinfo(url)
        self.authorization = basic_authorization(url)
        proxies = urllib.request.ProxyHandler({} if urlsplit(url).hostname in LOOPBACK else None)
        self.opener = urllib.request.build_opener(proxies, NoRedirects)

    def handle_error(self, request: object, client_address: object) -> None:
        """The harness has hung up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path != self.server.path:
            self.send_error(404)
            return
        headers = {name: self.headers[name] for name in PASSED_ON if name in self.headers}
        if self.server.authorization and "Authorization" not in headers:
            headers["Authorization"] = self.server.authorization
        try:
            with self.server.opener.open(
                urllib.request.Request(self.server.target, body, headers), timeout=SLOWEST_SECONDS
            ) as reply:
                self._answer(reply.status, dict(reply.headers), reply.read())
        except urllib.error.HTTPError as error:
            with error:
                self._answer(error.code, dict(error.headers), error.read())
        except (OSError, HTTPException):
            self.send_error(502, "the endpoint cannot be reached")

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name in PASSED_BACK:
            if name in headers:
                self.send_header(name, headers[name])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """A request is the harness's business."""
