"""Machines by their profile, each reached once in a process."""

import atexit
import importlib
import threading
from collections.abc import Mapping
from typing import Protocol

from nemotron.errors import ProfileError
from nemotron.transport.base import Session
from nemotron.transport.destination import Destination
from nemotron.transport.here import Here

_kept: dict[tuple[Destination, str | None, str | None], Session] = {}
_lock = threading.Lock()


class Reachable(Protocol):
    """The part of a profile that says where its commands run."""

    @property
    def is_here(self) -> bool: ...
    @property
    def host(self) -> str | None: ...
    @property
    def user(self) -> str | None: ...
    @property
    def port(self) -> int | None: ...
    @property
    def identity(self) -> str | None: ...


def session_for(profile: Reachable, environ: Mapping[str, str]) -> Session:
    """Not to be closed by who asks: the same machine is the same session, and it is closed when the process ends."""
    if profile.is_here:
        return Here(environ)
    if profile.host is None:
        raise ProfileError('tunnel = "ssh" needs a login node: add host = "NAME", by its name in ssh\'s configuration.')
    destination = Destination(profile.host, profile.user, profile.port, profile.identity)
    key = destination, environ.get("NEMOTRON_SSH_CONFIG"), environ.get("SSH_AUTH_SOCK")
    with _lock:
        if key not in _kept:
            ssh = importlib.import_module("nemotron.transport.ssh")  # paramiko: too slow for commands that stay here
            _kept[key] = ssh.Ssh(destination, environ)
        return _kept[key]


@atexit.register
def close_sessions() -> None:
    with _lock:
        sessions = list(_kept.values())
        _kept.clear()
    for session in sessions:
        session.close()
