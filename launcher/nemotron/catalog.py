"""The steps there are: each a folder below steps/ with a step.toml, its contract, and a step.py."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nemotron.errors import UsageError, unknown

STEPS = Path(__file__).parent / "steps"


@dataclass(frozen=True, slots=True)
class Step:
    id: str
    summary: str
    runs: str
    default_config: str
    configs: str
    """The folder with the configs that -c takes by name."""
    consumes: Mapping[str, str]
    produces: Mapping[str, str]
    parameters: Mapping[str, str]
    strategies: Mapping[str, str]
    errors: Mapping[str, str]

    @property
    def category(self) -> str:
        return self.id.partition("/")[0]

    @property
    def module(self) -> str:
        return f"nemotron.steps.{self.id.replace('/', '.')}.step"

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "category": self.category}


def all_steps() -> list[Step]:
    return [_read(path) for path in sorted(STEPS.glob("*/*/step.toml"))]


def steps_of(category: str | None) -> list[Step]:
    steps = all_steps()
    categories = {step.category for step in steps}
    if category is not None and category not in categories:
        raise UsageError(unknown("category", category, categories))
    return [step for step in steps if category in (None, step.category)]


def find_step(name: str) -> Step:
    steps = {step.id: step for step in all_steps()}
    if name not in steps:
        raise UsageError(unknown("step", name, steps))
    return steps[name]


def _read(path: Path) -> Step:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    return Step(id=path.parent.relative_to(STEPS).as_posix(), **content)
