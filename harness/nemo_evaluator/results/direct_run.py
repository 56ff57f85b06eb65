"""A results folder of direct mode, read: what was run, what became of it, what each task scored."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nemo_evaluator.errors import UsageError

OK = "ok"


@dataclass(frozen=True, slots=True)
class ReportedScore:
    """As the harness's own parser made it."""

    part: str
    """The task or one of its subtasks."""
    metric: str
    value: float
    stderr: float | None


@dataclass(frozen=True, slots=True)
class DirectRun:
    folder: Path
    manifest: Mapping[str, Any]
    states: Mapping[str, str]

    @property
    def model(self) -> str:
        return str(self.manifest["model"]["id"])

    @property
    def tasks(self) -> Mapping[str, Mapping[str, Any]]:
        tasks: Mapping[str, Mapping[str, Any]] = self.manifest["tasks"]
        return tasks

    def reported(self, task: str) -> Iterator[ReportedScore]:
        """Nothing for a task without a results.yml."""
        path = self.folder / task / "results.yml"
        if not path.is_file():
            return
        try:
            content = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            for part, result in (content["results"].get("tasks") or {}).items():
                for metric in result["metrics"].values():
                    for name, score in metric["scores"].items():
                        stderr = (score.get("stats") or {}).get("stderr")
                        yield ReportedScore(part, name, float(score["value"]), stderr)
        except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(f"{path} cannot be read ({type(error).__name__}): run the task again.") from error


def read_direct_run(folder: Path) -> DirectRun:
    manifest = _read(folder / "run_manifest.json", folder)
    states = _read(folder / "summary.json", folder)
    if not all(isinstance(manifest.get(key), dict) for key in ("model", "harness", "tasks")):
        raise UsageError(f"{folder / 'run_manifest.json'} has no model, harness and tasks: run the suite again.")
    return DirectRun(folder, manifest, states)


def _read(path: Path, folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}: name the EVAL_RESULTS_DIR of a run in direct mode.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(
            f"{folder} holds no results of direct mode, it has no {path.name}: name the EVAL_RESULTS_DIR of a run."
        ) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read ({error}): run the suite again.") from None
    if not isinstance(content, dict):
        raise UsageError(f"{path} holds no object: run the suite again.")
    return content
