"""The files of ssh's configuration as one text, since paramiko does not follow Include."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import paramiko

from nemotron.errors import UsageError

SYSTEM_FOLDER = Path("/etc/ssh")
MOST_INCLUDES = 16
"""How deep ssh follows Include, too."""


class SshConfig(paramiko.SSHConfig):
    """Leaves home folders to us, who know whose environment counts, and to the shell that runs a ProxyCommand."""

    TOKENS_BY_CONFIG_KEY: ClassVar[dict[str, list[str]]] = {  # type: ignore[misc]
        key: [token for token in tokens if token not in ("~", "%d")]
        for key, tokens in paramiko.SSHConfig.TOKENS_BY_CONFIG_KEY.items()
    }


def home_of(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or Path.home())


def other_config(environ: Mapping[str, str]) -> Path | None:
    """Read instead of the user's and the system's, as by `ssh -F`."""
    given = environ.get("NEMOTRON_SSH_CONFIG")
    return Path(given).expanduser() if given else None


def parsed(first: Iterator[str], environ: Mapping[str, str]) -> paramiko.SSHConfig:
    """`first` comes before all files, and ssh takes the first value that it meets."""
    home = home_of(environ)
    files = [path for path in (home / ".ssh/config", SYSTEM_FOLDER / "ssh_config") if path.is_file()]
    if other := other_config(environ):
        if not other.is_file():
            raise UsageError(f"NEMOTRON_SSH_CONFIG={other}: there is no such file.")
        files = [other]
    lines = list(first)
    for path in files:
        lines += ["Host *", *_lines(path, home)]
    try:
        return SshConfig.from_text("\n".join(lines))
    except (paramiko.ConfigParseError, ValueError) as error:
        where = " or ".join(str(path) for path in files)
        raise UsageError(f"ssh's configuration cannot be read ({error}): mend {where}.") from None


def _lines(path: Path, home: Path, depth: int = 0) -> Iterator[str]:
    """With included files in their place. After one, the block that includes it goes on; `Host` lines inside it count
    for themselves."""
    if depth > MOST_INCLUDES:
        raise UsageError(f"{path}: too many levels of Include.")
    block = "Host *"
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}.") from None
    for line in map(str.strip, text.splitlines()):
        keyword, _, value = line.replace("=", " ", 1).partition(" ")
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
    return SYSTEM_FOLDER if path.is_relative_to(SYSTEM_FOLDER) else home / ".ssh"


def _included(value: str, folder: Path, home: Path) -> Iterator[Path]:
    for pattern in value.replace('"', " ").split():
        place = Path(home, pattern[2:]) if pattern.startswith("~/") else Path(folder, pattern)
        root = Path(place.anchor)
        yield from sorted(found for found in root.glob(os.fspath(place.relative_to(root))) if found.is_file())
