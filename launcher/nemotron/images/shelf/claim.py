"""One maker for each image: a file created exclusively names the owner, who renews it while it lives.

An owner of the same user on this machine is looked up among the processes. Any other is taken for dead when its claim
did not change for two minutes by the waiter's own clock; clocks of different machines are never compared.
"""

import getpass
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from nemotron.errors import LauncherError
from nemotron.images.shelf.shell import ABSENT, LOOK, RELEASE, RENEW, TAKE, TAKE_OVER, TAKEN, must, sh
from nemotron.processes import started
from nemotron.transport.base import Session, TransportError

Say = Callable[[str], None]


class ClaimLost(LauncherError):
    """Somebody took us for dead and makes the image now."""


@dataclass(frozen=True, slots=True)
class Patience:
    """In seconds."""

    heartbeat: float = 10.0
    poll: float = 2.0
    stale: float = 120.0


@dataclass(slots=True)
class Claim:
    session: Session
    path: str
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    content: str = ""
    """Who has it."""
    was_contended: bool = False
    """Somebody else had it first."""

    def __post_init__(self) -> None:
        owner = {"token": self.token, "user": getpass.getuser(), "host": socket.gethostname(), "pid": os.getpid()}
        self.content = json.dumps(owner | {"started": started(os.getpid()), "machine": _machine()})

    def is_held(self) -> bool:
        return sh(self.session, RENEW, self.path, self.content).code == 0

    def check(self) -> None:
        if not self.is_held():
            raise ClaimLost(f"{self.path} was taken over by somebody else: run it again, to use what they make.")


@contextmanager
def claimed(session: Session, path: str, say: Say, patience: Patience | None = None) -> Iterator[Claim]:
    """Waits until it is ours."""
    patience = patience or Patience()
    claim = Claim(session, path)
    _take(claim, say, patience)
    done = threading.Event()
    beating = threading.Thread(target=_beat, args=(claim, done, patience.heartbeat), name="heartbeat", daemon=True)
    beating.start()
    try:
        yield claim
    finally:
        done.set()
        beating.join()
        with suppress(TransportError):  # then others find it stale
            sh(session, RELEASE, path, claim.content)


def _take(claim: Claim, say: Say, patience: Patience) -> None:
    seen, since = "", time.monotonic()
    while (done := sh(claim.session, TAKE, claim.path, claim.content)).code != 0:
        if done.code != TAKEN:
            must(done, claim.session, f"claiming {claim.path}")
        look = sh(claim.session, LOOK, claim.path)
        if look.code == ABSENT:
            continue
        if not claim.was_contended:
            say(f"waiting for {_who(look.stdout)}")
        claim.was_contended = True
        if look.stdout != seen:
            seen, since = look.stdout, time.monotonic()
        owner = seen.rsplit("\n", 2)[0]
        lives = _lives_here(owner)
        if lives is False or (lives is None and time.monotonic() - since > patience.stale):
            say(f"taking over from {_who(seen)}, who does not live")
            if sh(claim.session, TAKE_OVER, claim.path, owner, claim.content, claim.token).code == 0:
                return
        time.sleep(patience.poll)


def _beat(claim: Claim, done: threading.Event, period: float) -> None:
    while not done.wait(period):
        try:
            claim.is_held()
        except TransportError:
            continue  # the next beat tries again; whether we still have it is checked before anything is published


def _who(look: str) -> str:
    owner = _owner(look.rsplit("\n", 2)[0])
    return f"process {owner['pid']} of {owner['user']} on {owner['host']}" if owner else "somebody"


def _lives_here(content: str) -> bool | None:
    """None when that cannot be said: of another machine, or of another user, whose processes may be hidden from us."""
    owner = _owner(content)
    if owner is None or (owner["machine"], owner["user"]) != (_machine(), getpass.getuser()):
        return None
    return owner["started"] == started(owner["pid"])


def _owner(content: str) -> dict[str, str] | None:
    try:
        said = json.loads(content)
        return {name: str(said[name]) for name in ("user", "host", "pid", "started", "machine")}
    except (ValueError, KeyError, TypeError):
        return None


def _machine() -> str:
    """Host, boot and process namespace: inside these a process id means one process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return ":".join((socket.gethostname(), boot, str(Path("/proc/self/ns/pid").readlink())))
    except OSError:
        return f"{socket.gethostname()}:{secrets.token_hex(8)}"
