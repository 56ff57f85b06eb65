"""Installed wheels that ship `core_evals/<package>/framework.yml`, found without importing any of them."""

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nemo_evaluator.errors import UsageError
from nemo_evaluator.frameworks.merge import merged

NAMESPACE = "core_evals"
OWN_PACKAGE = "nemo_evaluator"
"""Our own benchmarks tell of themselves there, for whoever reads an image; here the registry knows them."""
CHAT_AND_COMPLETIONS = ("chat", "completions")


@dataclass(frozen=True, slots=True)
class Task:
    """One evaluation of a framework, with everything that is decided before a user says anything."""

    name: str
    framework: str
    package: str
    """Below `core_evals`; its `output` module parses the results."""
    description: str
    endpoint_types: tuple[str, ...]
    needs: tuple[str, ...]
    """Capabilities of the endpoint, such as logprobs."""
    defaults: Mapping[str, Any]
    """Of the framework, overlaid by the task's own."""

    @property
    def subset(self) -> str | None:
        """What the harness itself runs when nothing else is said."""
        value = self.defaults["config"]["params"].get("task")
        return None if value is None else str(value)


def installed_tasks() -> list[Task]:
    """In the order of the files. Raises UsageError for a framework.yml that cannot be read."""
    files = [path for path in sorted(_framework_files()) if path.parent.name != OWN_PACKAGE]
    return [task for path in files for task in read_framework(path)]


def read_framework(path: Path) -> list[Task]:
    try:
        document = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return [_task(document, evaluation, path) for evaluation in document["evaluations"]]
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        said = " ".join(str(error).split())
        raise UsageError(
            f"{path} is no framework.yml ({type(error).__name__}: {said}): reinstall the wheel it belongs to."
        ) from None


def _framework_files() -> Iterator[Path]:
    spec = importlib.util.find_spec(NAMESPACE)
    for folder in (spec and spec.submodule_search_locations) or ():
        yield from Path(folder).glob("*/framework.yml")


def _task(document: dict[str, Any], evaluation: dict[str, Any], path: Path) -> Task:
    defaults = merged(document.get("defaults") or {}, evaluation.get("defaults") or {})
    config = defaults["config"]
    config.setdefault("params", {})
    return Task(
        name=config["type"],
        framework=document["framework"]["name"],
        package=document["framework"].get("pkg_name") or path.parent.name,
        description=" ".join((evaluation.get("description") or evaluation.get("name") or "").split()),
        endpoint_types=tuple(config.get("supported_endpoint_types") or CHAT_AND_COMPLETIONS),
        needs=tuple(config.get("required_capabilities") or ()),
        defaults=defaults,
    )
