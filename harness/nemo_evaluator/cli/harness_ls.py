"""`nemo-evaluator ls`."""

import json
from itertools import groupby

import click

from nemo_evaluator.frameworks.tasks import all_tasks
from nemo_evaluator.frameworks.wheels import Task


@click.command()
@click.option("--json", "as_json", is_flag=True, help="For programs: endpoint types, default subset and all defaults.")
def ls(as_json: bool) -> None:
    """List the tasks of every harness installed here."""
    tasks = all_tasks()
    if as_json:
        click.echo(json.dumps([_row(task) for task in tasks], indent=2, ensure_ascii=False))
        return
    for framework, members in groupby(tasks, key=lambda task: task.framework):
        click.echo(f"{framework}: ")
        for task in members:
            click.echo(f"  * {task.name}")


def _row(task: Task) -> dict[str, object]:
    return {
        "task": task.name,
        "harness": task.framework,
        "endpoint_types": list(task.endpoint_types),
        "subset": task.subset,
        "required_capabilities": list(task.needs),
        "defaults": task.defaults["config"]["params"],
        "description": task.description,
    }
