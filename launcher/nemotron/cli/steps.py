"""`nemotron steps list` and `show`: what there is to run."""

import json

import click

from nemotron.catalog import find_step, steps_of


@click.command("list")
@click.option("--category", help="Only the steps of one category, such as eval.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def list_steps(category: str | None, as_json: bool) -> None:
    """The steps there are."""
    found = steps_of(category)
    if as_json:
        click.echo(json.dumps([{"id": s.id, "category": s.category, "summary": s.summary} for s in found], indent=2))
        return
    width = max(len(step.id) for step in found)
    for step in found:
        click.echo(f"{step.id:<{width}}  {step.summary}")


@click.command("show")
@click.argument("step_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def show_step(step_id: str, as_json: bool) -> None:
    """The contract of a step: what it takes, what it leaves, what can go wrong."""
    step = find_step(step_id)
    if as_json:
        click.echo(json.dumps(step.to_dict(), indent=2))
        return
    click.echo(
        f"{step.id}: {step.summary}\n"
        f"Runs {step.runs}; -c takes a name of {step.configs}/, default {step.default_config}."
    )
    for section in ("consumes", "produces", "parameters", "strategies", "errors"):
        entries = step.to_dict()[section]
        width = max(map(len, entries))
        click.echo(f"\n{section.capitalize()}\n" + "\n".join(f"  {k:<{width}}  {v}" for k, v in entries.items()))
