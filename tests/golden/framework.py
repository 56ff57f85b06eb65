"""`python -m tests.golden.framework`: write the framework.yml by which our benchmarks are found in an image anew."""

from pathlib import Path
from typing import Any

import yaml

from nemo_evaluator.environments.registry import bundled_names
from nemo_evaluator.frameworks.tasks import OWN, all_tasks
from nemo_evaluator.frameworks.wheels import Task

FILE = Path(__file__).parents[2] / "harness/nemo_evaluator/benchmarks/framework.yml"
HEAD = """\
# Our own benchmarks in the form that harness wheels describe theirs in, so that `nemotron images tasks` and preflight
# find them in an image; the wheel has it as core_evals/nemo_evaluator/framework.yml.
# Written by `python -m tests.golden.framework`, from the registry.
"""


def text() -> str:
    tasks = [task for task in all_tasks() if task.framework == OWN and task.name in bundled_names()]
    framework = {
        "name": OWN,
        "pkg_name": "nemo_evaluator",
        "full_name": "NeMo Evaluator",
        "description": "The benchmarks of this project.",
    }
    document = {"framework": framework, "evaluations": [_evaluation(task) for task in tasks]}
    return HEAD + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)


def _evaluation(task: Task) -> dict[str, Any]:
    return {"name": task.name, "description": task.description, "defaults": dict(task.defaults)}


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
