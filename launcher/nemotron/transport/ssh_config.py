"""What ssh's own configuration says of a login node and of the hosts on the way to it."""

import getpass
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import paramiko

from nemotron.errors import UsageError
from nemotron.transport.destination import Destination
from nemotron.transport.ssh_config_file import home_of, parsed

DEFAULT_IDENTITIES = ("id_rsa", "id_ecdsa", "id_ed25519")
USER_KNOWN_HOSTS = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
GLOBAL_KNOWN_HOSTS = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"
SSH_PORT = 22
CONNECT_SECONDS = 15
KEEPALIVE_SECONDS = 30
MOST_HOPS = 16

_JUMP = re.compile(r"(?:ssh://)?(?:(?P<user>[^@\s]+)@)?(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:@\s]+))(?::(?P<port>\d+))?/?")
_TIME = re.compile(r"(\d+)([smhdw]?)", re.IGNORECASE)
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}

Settings = Mapping[str, str | list[str] | None]


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
    connect_timeout: int
    keepalive: int
    """Seconds between signs of life."""
    shares_connections: bool
    """Whether ssh is told to keep a control socket for it."""
    behind: str | None = None
    """The hop before it."""

    def __str__(self) -> str:
        return f"{self.user}@{self.name}"


def route_to(destination: Destination, environ: Mapping[str, str]) -> tuple[Hop, ...]:
    """Every server on the way, the destination last."""
    config = parsed(destination.settings, environ)
    return _Configuration(config, home_of(environ), environ.get("SSH_AUTH_SOCK") or None).route(destination.host)


@dataclass(frozen=True, slots=True)
class _Configuration:
    config: paramiko.SSHConfig
    home: Path
    agent: str | None

    def route(self, name: str, depth: int = 0) -> tuple[Hop, ...]:
        """The first of several jump hosts may itself be behind one; the others are reached through those before."""
        if depth > MOST_HOPS:
            raise UsageError(f"ssh's ProxyJump for {name} leads in a circle: give the jump host `ProxyJump none`.")
        settings = self._lookup(name)
        way: tuple[Hop, ...] = ()
        for number, jump in enumerate(_jumps(settings)):
            user, host, port = _parse_jump(jump)
            there = self.route(host, depth + 1) if number == 0 else (*way, self._hop(host, self._lookup(host)))
            last = replace(there[-1], user=user or there[-1].user, port=port or there[-1].port)
            way = (*there[:-1], last)
        hop = self._hop(name, settings)
        return (*way, replace(hop, behind=str(way[-1])) if way else hop)

    def _lookup(self, name: str) -> Settings:
        try:
            found: Settings = self.config.lookup(name)
        except (KeyError, ValueError, paramiko.CouldNotCanonicalize) as error:
            raise UsageError(f"ssh's configuration for {name} cannot be used: {error!r}.") from None
        return found

    def _hop(self, name: str, settings: Settings) -> Hop:
        text = {key: value for key, value in settings.items() if isinstance(value, str)}
        identities = settings.get("identityfile") or [f"~/.ssh/{file}" for file in DEFAULT_IDENTITIES]
        known = text.get("userknownhostsfile", USER_KNOWN_HOSTS).split()
        known += text.get("globalknownhostsfile", GLOBAL_KNOWN_HOSTS).split()
        return Hop(
            name=name,
            host=text["hostname"],
            port=_port(text),
            user=text.get("user") or getpass.getuser(),
            identities=tuple(self._path(path) for path in identities),
            certificates=(self._path(text["certificatefile"]),) if "certificatefile" in text else (),
            only_identities=text.get("identitiesonly", "no").lower() == "yes",
            agent=self._agent(text.get("identityagent")),
            key_name=text.get("hostkeyalias"),
            known_hosts=tuple(self._path(path) for path in known if path.lower() != "none"),
            proxy_command=None if _jumps(settings) else text.get("proxycommand"),
            connect_timeout=_seconds(text, "connecttimeout") or CONNECT_SECONDS,
            keepalive=_seconds(text, "serveraliveinterval") or KEEPALIVE_SECONDS,
            shares_connections=text.get("controlpath", "none").lower() != "none",
        )

    def _path(self, path: str) -> Path:
        path = path.replace("%d", str(self.home))
        return self.home / path[2:] if path.startswith("~/") else Path(path)

    def _agent(self, configured: str | None) -> str | None:
        if configured is None or configured == "SSH_AUTH_SOCK":
            return self.agent
        return None if configured.lower() == "none" else str(self._path(configured))


def _jumps(settings: Settings) -> list[str]:
    """Of ProxyJump and ProxyCommand the one that was met first counts."""
    jump = settings.get("proxyjump")
    if not isinstance(jump, str) or jump.lower() == "none":
        return []
    met = list(settings)
    if "proxycommand" in met and met.index("proxycommand") < met.index("proxyjump"):
        return []
    return [part.strip() for part in jump.split(",")]


def _parse_jump(text: str) -> tuple[str | None, str, int | None]:
    match = _JUMP.fullmatch(text)
    if match is None:
        raise UsageError(f"ssh's ProxyJump {text!r} is no host: write [user@]host[:port], or several with commas.")
    return match["user"], match["v6"] or match["host"], int(match["port"]) if match["port"] else None


def _port(settings: Mapping[str, str]) -> int:
    try:
        return int(settings.get("port", SSH_PORT))
    except ValueError:
        raise UsageError(f"ssh's configuration says Port {settings['port']}, which is no number.") from None


def _seconds(settings: Mapping[str, str], key: str) -> int | None:
    """In ssh's spelling of times: `30`, `90s`, `2m`; what is no time, such as `none`, is left to the default."""
    match = _TIME.fullmatch(settings.get(key, ""))
    return int(match[1]) * _UNITS[match[2].lower()] if match else None
