"""Which machine is meant, before ssh's configuration is read."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nemotron.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9_.:%][A-Za-z0-9_.:%-]*")
_WORD = re.compile(r"[^\s\"'-][^\s\"']*")


@dataclass(frozen=True, slots=True)
class Destination:
    """What a profile says of its login node; ssh's configuration fills the rest."""

    host: str
    user: str | None = None
    port: int | None = None
    identity: str | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.host):
            raise UsageError(f"host = {self.host!r} is no host: write a name that `ssh` takes, without user and port.")
        if self.user is not None and not _WORD.fullmatch(self.user):
            raise UsageError(f"user = {self.user!r} is no login name.")
        if self.identity is not None and not self.identity.isprintable():
            raise UsageError(f"identity = {self.identity!r} is no path.")

    @property
    def settings(self) -> Iterator[str]:
        """In the words of ssh's configuration."""
        yield f"Host {self.host}"
        named = {"User": self.user, "Port": self.port, "IdentityFile": self.identity}
        yield from (f"  {key} {value}" for key, value in named.items() if value is not None)
