"""The answers of probe.py, and the program itself."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from nemotron.doctor.probe import MARK
from nemotron.errors import LauncherError

PROGRAM = Path(__file__).with_name("probe.py").read_bytes()


class NoAnswer(LauncherError):
    """The probe ran, or not, and gave no answer."""


@dataclass(frozen=True, slots=True)
class Folder:
    exists: bool
    there: str
    """The folder itself, or the nearest one above that exists."""
    flaw: str
    """Why nothing can be written there; nothing if it can."""
    free_bytes: int
    free_files: int | None


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a request got."""

    stage: str
    """name, connection, tls, http, or answer: where it ended."""
    said: str
    status: int | None
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    host: str
    user: str
    home: str
    python: str
    now: float
    sources: Mapping[str, str]
    """Path -> why it cannot be read; nothing if it can."""
    folders: Mapping[str, Folder]
    commands: Mapping[str, str]
    """Name -> path, or nothing."""
    has_pyxis: bool | None
    """None: not asked."""
    has_image: bool | None
    cached: Mapping[str, bool]
    """Dataset or tokenizer of the hub -> whether it can be loaded without the hub."""
    urls: Mapping[str, Reached]
    endpoint: Reached | None
    quota: str = field(repr=False)

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> "Facts":
        known = {one.name: found[one.name] for one in fields(cls)}
        return cls(
            **known
            | {
                "folders": {path: Folder(**folder) for path, folder in found["folders"].items()},
                "urls": {url: _reached(answer) for url, answer in found["urls"].items()},
                "endpoint": _reached(found["endpoint"]) if found["endpoint"] else None,
            }
        )


def parse_facts(lines: Iterable[str]) -> Facts:
    """From whatever else the place prints."""
    said = [line.strip().removeprefix(MARK) for line in lines if line.strip().startswith(MARK)]
    if not said:
        raise NoAnswer("The probe gave no answer.")
    return Facts.of(json.loads(said[-1]))


def _reached(said: Mapping[str, Any]) -> Reached:
    return Reached(said["stage"], said["said"], said["status"], tuple(said["models"]))
