"""`nel list`."""

import json
from dataclasses import asdict

import click

from nemo_evaluator.environments.registry import BenchmarkInfo, available
from nemo_evaluator.errors import UsageError


@click.command("list")
@click.option("--source", help="Filter by source (e.g., builtin).")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def list_benchmarks(source: str | None, as_json: bool) -> None:
    """Show available benchmarks."""
    found = available()
    sources = sorted({info.source for info in found})
    if source is not None:
        if source not in sources:
            raise UsageError(f"Unknown source {source!r}: there are {', '.join(sources)}.")
        found = [info for info in found if info.source == source]
    if as_json:
        click.echo(json.dumps([asdict(info) for info in found], indent=2))
        return
    width = max(len(info.name) for info in found)
    for info in found:
        click.echo(f"{info.name:{width}}  {_facts(info)}")


def _facts(info: BenchmarkInfo) -> str:
    size = "" if info.size is None else f"  ({info.size:,} problems)"
    return f"{info.summary}{size}  {info.dataset or ''}".rstrip()
