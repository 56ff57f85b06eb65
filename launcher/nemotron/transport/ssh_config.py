"""What ssh's own configuration says of a login node and of the hosts on the way to it."""

import getpass
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import paramiko

from nemotron.errors import UsageError

SYSTEM_CONFIG = Path("/etc/ssh/ssh_config")
DEFAULT_IDENTITIES = ("id_rsa", "id_ecdsa", "id_ed25519")
SSH_PORT = 22
CONNECT_TIMEOUT_SECONDS = 15.0
KEEPALIVE_SECONDS = 30
MOST_HOPS = 16
MOST_INCLUDES = 16
"""How deep ssh follows Include, too."""

_NAME = re.compile(r"[A-Za-z0-9_.:%][A-Za-z0-9_.:%-]*")
_WORD = re.compile(r"[^\s\"']+")
_JUMP = re.compile(r"(?:ssh://)?(?:(?P<user>[^@\s]+)@)?(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:@\s]+))(?::(?P<port>\d+))?/?")


@dataclass(frozen=True, slots=True)
class Destination:
    """What a profile says of its login node; ssh's configuration fills the rest."""

    host: str
    user: str | None = None
    port: int | None = None
    identity: str | None = None


@dataclass(frozen=True, slots=True)
class Hop:
    """One SSH server, complete."""

    name: str
    """As a person calls it; `host` is where it is."""
    host: str
    port: int
    user: str
    identities: tuple[Path, ...]
    certificates: tuple[Path, ...]
    only_identities: bool
    """No other keys of the agent."""
    agent: str | None
    """Socket of the agent."""
    key_name: str | None
    """HostKeyAlias: the name its host key goes by."""
    known_hosts: tuple[Path, ...]
    proxy_command: str | None
    """What connects standard input and output with it, instead of a socket."""
    connect_timeout: float
    keepalive: int
    """Seconds between signs of life; 0 for none."""
    shares_connections: bool
    """Whether ssh is told to keep a control socket for it."""

    def __str__(self) -> str:
        return f"{self.user}@{self.name}"


def route_to(destination: Destination, environ: Mapping[str, str]) -> tuple[Hop, ...]:
    """Every server on the way, the destination last."""
    return _Configuration.read(destination, environ).route(destination.host)


def config_file(environ: Mapping[str, str]) -> Path | None:
    """Read instead of the user's and the system's, as by `ssh -F`."""
    given = environ.get("NEMOTRON_SSH_CONFIG")
    return Path(given).expanduser() if given else None


@dataclass(frozen=True, slots=True)
class _Configuration:
    config: paramiko.SSHConfig
    home: Path
    agent: str | None

    @classmethod
    def read(cls, destination: Destination, environ: Mapping[str, str]) -> "_Configuration":
        home = Path(environ.get("HOME") or Path.home())
        if given := config_file(environ):
            if not given.is_file():
                raise UsageError(f"NEMOTRON_SSH_CONFIG={given}: there is no such file.")
            files = [given]
        else:
            files = [path for path in (home / ".ssh/config", SYSTEM_CONFIG) if path.is_file()]
        lines = [*_settings_of(destination)]
        for path in files:
            lines += ["Host *", *_lines(path, home)]
        try:
            config = paramiko.SSHConfig.from_text("\n".join(lines))
        except paramiko.ConfigParseError as error:
            raise UsageError(
                f"ssh's configuration cannot be read ({error}): mend {' or '.join(map(str, files))}."
            ) from None
        return cls(config, home, environ.get("SSH_AUTH_SOCK") or None)

    def route(self, name: str, depth: int = 0) -> tuple[Hop, ...]:
        """The first of several jump hosts may itself be behind one; the others are reached through those before."""
        if depth > MOST_HOPS:
            raise UsageError(f"ssh's ProxyJump for {name} leads in a circle: give the jump host `ProxyJump none`.")
        settings = self._lookup(name)
        way: tuple[Hop, ...] = ()
        for number, jump in enumerate(_jumps(settings)):
            user, host, port = _parse_jump(jump)
            there = self.route(host, depth + 1) if number == 0 else (self._hop(host, self._lookup(host)),)
            way += (*there[:-1], _with(there[-1], user, port))
        return (*way, self._hop(name, settings))

    def _lookup(self, name: str) -> Mapping[str, str | list[str] | None]:
        try:
            found: Mapping[str, str | list[str] | None] = self.config.lookup(name)
        except ImportError:
            raise UsageError(
                "ssh's configuration has a `Match exec`, which is not read here: say the same in a `Host` block."
            ) from None
        return found

    def _hop(self, name: str, settings: Mapping[str, str | list[str] | None]) -> Hop:
        text = {key: value for key, value in settings.items() if isinstance(value, str)}
        identities = settings.get("identityfile") or [str(self.home / ".ssh" / file) for file in DEFAULT_IDENTITIES]
        known = text.get("userknownhostsfile", "~/.ssh/known_hosts ~/.ssh/known_hosts2").split()
        known += text.get("globalknownhostsfile", "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2").split()
        control = text.get("controlpath", "none")
        return Hop(
            name=name,
            host=text["hostname"],
            port=_number(text, "port", SSH_PORT),
            user=text.get("user") or getpass.getuser(),
            identities=tuple(self._path(path) for path in identities),
            certificates=(self._path(text["certificatefile"]),) if "certificatefile" in text else (),
            only_identities=text.get("identitiesonly", "no").lower() == "yes",
            agent=self._agent(text.get("identityagent")),
            key_name=text.get("hostkeyalias"),
            known_hosts=tuple(self._path(path) for path in known if path.lower() != "none"),
            proxy_command=None if _jumps(settings) else text.get("proxycommand"),
            connect_timeout=_number(text, "connecttimeout", 0) or CONNECT_TIMEOUT_SECONDS,
            keepalive=_number(text, "serveraliveinterval", KEEPALIVE_SECONDS),
            shares_connections=control.lower() != "none",
        )

    def _path(self, path: str) -> Path:
        path = path.replace("%d", str(self.home))
        return self.home / path[2:] if path.startswith("~/") else Path(path)

    def _agent(self, configured: str | None) -> str | None:
        if configured is None or configured == "SSH_AUTH_SOCK":
            return self.agent
        return None if configured.lower() == "none" else str(self._path(configured))


def _settings_of(destination: Destination) -> Iterator[str]:
    """The profile's own words come first, and ssh takes the first value it meets."""
    if not _NAME.fullmatch(destination.host):
        raise UsageError(
            f"host = {destination.host!r} is no host: write its name in ssh's configuration or its address."
        )
    yield f"Host {destination.host}"
    if destination.user is not None:
        if not _WORD.fullmatch(destination.user):
            raise UsageError(f"user = {destination.user!r} is no login name.")
        yield f"  User {destination.user}"
    if destination.port is not None:
        yield f"  Port {destination.port}"
    if destination.identity is not None:
        if "\n" in destination.identity:
            raise UsageError(f"identity = {destination.identity!r} is no path.")
        yield f"  IdentityFile {destination.identity}"


def _lines(path: Path, home: Path, depth: int = 0) -> Iterator[str]:
    """With included files in their place. After one, the block that includes it goes on; `Host` lines inside it count
    for themselves."""
    if depth > MOST_INCLUDES:
        raise UsageError(f"{path}: too many levels of Include.")
    block = "Host *"
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}.") from None
    for line in lines:
        keyword, _, value = line.strip().replace("=", " ", 1).partition(" ")
        if keyword.lower() == "include":
            for included in _included(value, _beside(path, home), home):
                yield from _lines(included, home, depth + 1)
            yield block
            continue
        if keyword.lower() in ("host", "match"):
            block = line
        yield line


def _beside(path: Path, home: Path) -> Path:
    """Where relative names of included files begin."""
    return SYSTEM_CONFIG.parent if path.is_relative_to(SYSTEM_CONFIG.parent) else home / ".ssh"


def _included(value: str, folder: Path, home: Path) -> Iterator[Path]:
    for pattern in value.replace('"', " ").split():
        place = Path(home, pattern[2:]) if pattern.startswith("~/") else Path(folder, pattern)
        yield from sorted(Path(place.anchor).glob(str(place.relative_to(place.anchor))))


def _jumps(settings: Mapping[str, str | list[str] | None]) -> list[str]:
    """Of ProxyJump and ProxyCommand the one that was met first counts."""
    jump = settings.get("proxyjump")
    order = list(settings)
    if not isinstance(jump, str) or jump.lower() == "none":
        return []
    if "proxycommand" in settings and order.index("proxycommand") < order.index("proxyjump"):
        return []
    return [part.strip() for part in jump.split(",")]


def _parse_jump(text: str) -> tuple[str | None, str, int | None]:
    match = _JUMP.fullmatch(text)
    if match is None:
        raise UsageError(f"ssh's ProxyJump {text!r} is not a host: write [user@]host[:port], or several with commas.")
    return match["user"], match["v6"] or match["host"], int(match["port"]) if match["port"] else None


def _with(hop: Hop, user: str | None, port: int | None) -> Hop:
    return replace(hop, user=user or hop.user, port=port or hop.port)


def _number(settings: Mapping[str, str], key: str, default: int) -> int:
    try:
        return int(settings.get(key, default))
    except ValueError:
        raise UsageError(f"ssh's configuration says {key} {settings[key]!r}, which is no number.") from None
