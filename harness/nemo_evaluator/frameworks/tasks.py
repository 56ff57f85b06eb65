"""Every task that `nemo-evaluator` can run here, and how one is found by what a user writes."""

from nemo_evaluator.config.keypath import did_you_mean
from nemo_evaluator.environments.registry import BenchmarkInfo, available
from nemo_evaluator.errors import UsageError
from nemo_evaluator.frameworks.wheels import CHAT_AND_COMPLETIONS, Task, installed_tasks

OWN = "nemo-evaluator"
"""The framework that this project's own benchmarks belong to."""
PARALLELISM = 16


def all_tasks() -> list[Task]:
    """The wheels' first: where both have a gsm8k, the name alone means the wheel's, as in every image."""
    return [*installed_tasks(), *map(_bundled, available())]


def _bundled(info: BenchmarkInfo) -> Task:
    config = {
        "type": info.name,
        "supported_endpoint_types": list(CHAT_AND_COMPLETIONS),
        "params": {"task": info.name, "parallelism": PARALLELISM},
    }
    adapter = {"use_caching": False}  # the engine's journal keeps every answer
    defaults = {"config": config, "target": {"api_endpoint": {"adapter_config": adapter}}}
    return Task(info.name, OWN, "", info.summary, CHAT_AND_COMPLETIONS, (), defaults)


def find(name: str, tasks: list[Task], framework: str = "") -> Task:
    """`gsm8k`, or `FRAMEWORK.gsm8k` to choose between two harnesses. Raises UsageError with the nearest name."""
    named = {f"{task.framework}.{task.name}": task for task in reversed(tasks)}
    if (task := named.get(f"{framework}.{name}") or named.get(name)) is not None:
        return task
    found = [task for task in tasks if task.name == name and framework in ("", task.framework)]
    wheels = [task for task in found if task.package]
    if len(wheels) > 1:
        choices = " or ".join(f"{task.framework}.{name}" for task in wheels)
        raise UsageError(f"--eval_type {name} is in several harnesses: write {choices}.")
    if found:
        return found[0]
    near = did_you_mean(name, {task.name for task in tasks})
    raise UsageError(f"--eval_type {name!r} is not installed here{near}; `nemo-evaluator ls` lists what is.")
