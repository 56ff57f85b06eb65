"""What a step is asked, and what it makes of it; steps touch nothing themselves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from nemotron.job import Job
from nemotron.profiles import NamedProfile, Profile


@dataclass(frozen=True, slots=True)
class Request:
    config: str
    profile: NamedProfile
    folder: Path
    """Where the command was given."""
    now: datetime
    environ: Mapping[str, str] = field(repr=False)
    tasks: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    rebuilds_squash: bool = False


@dataclass(frozen=True, slots=True)
class CompiledJob:
    job: Job
    profile: Profile
    environ: Mapping[str, str] = field(repr=False)
    """With the values of the job's secrets."""


@dataclass(frozen=True, slots=True)
class GeneratedFile:
    path: Path
    text: str
    replaces: bool
    next_step: str


class StepModule(Protocol):
    def compile_step(self, request: Request) -> CompiledJob | GeneratedFile: ...
