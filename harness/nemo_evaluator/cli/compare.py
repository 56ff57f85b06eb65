"""`nel compare`: two results folders of direct mode."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from nemo_evaluator.errors import UsageError
from nemo_evaluator.results.comparable import Difference, differences
from nemo_evaluator.results.compare import Comparison, Side
from nemo_evaluator.results.compare import compare as compared
from nemo_evaluator.results.direct_run import DirectRun, read_direct_run

HEAD = ("task", "metric", "questions", "a", "b", "b - a", "95 % interval", "p", "better", "worse")


@click.command()
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option("--allow-differences", is_flag=True, help="Compare although the runs did not ask the same.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def compare(a: Path, b: Path, allow_differences: bool, as_json: bool) -> None:
    """Compare the results folders A and B, question by question.

    Both are folders that direct mode wrote. Runs that differ in more than the model are refused.
    """
    first, second = read_direct_run(a), read_direct_run(b)
    found = differences(first, second)
    if found and not allow_differences:
        lines = [f"{a} and {b} cannot be compared, they differ in:", *(f"  {difference}" for difference in found)]
        raise UsageError("\n".join([*lines, "Run one again like the other, or pass --allow-differences."]))
    comparisons = list(compared(first, second))
    if not comparisons:
        raise UsageError(f"{a} and {b} have no finished task with the same score in both: run the same tasks.")
    if as_json:
        click.echo(json.dumps(_document(first, second, found, comparisons), indent=2))
        return
    for line in _lines(first, second, found, comparisons):
        click.echo(line)


def _document(
    a: DirectRun, b: DirectRun, found: Sequence[Difference], comparisons: Sequence[Comparison]
) -> dict[str, object]:
    return {
        "a": {"folder": str(a.folder), "model": a.model},
        "b": {"folder": str(b.folder), "model": b.model},
        "differences": [asdict(difference) for difference in found],
        "comparisons": [asdict(comparison) for comparison in comparisons],
    }


def _lines(a: DirectRun, b: DirectRun, found: Sequence[Difference], comparisons: Sequence[Comparison]) -> Iterator[str]:
    yield f"a: {a.model} ({a.folder})"
    yield f"b: {b.model} ({b.folder})"
    for difference in found:
        yield f"they differ in {difference}"
    rows = [HEAD, *map(_row, comparisons)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    for comparison in comparisons:
        yield from _notes(comparison)


def _row(found: Comparison) -> tuple[str, ...]:
    return (
        found.part,
        found.metric,
        "unpaired" if found.n is None else f"{found.n:,}",
        _side(found.a),
        _side(found.b),
        f"{found.difference:+.4f}",
        "" if found.lower is None else f"{found.lower:+.4f} {found.upper:+.4f}",
        "" if found.p_value is None else f"{found.p_value:.4f}",
        "" if found.gained is None else f"{found.gained:,}",
        "" if found.lost is None else f"{found.lost:,}",
    )


def _side(side: Side) -> str:
    interval = side.interval
    if interval.lower is None:
        return f"{side.value:.4f}"
    return f"{side.value:.4f} [{interval.lower:.4f}, {interval.upper:.4f}]"


def _notes(found: Comparison) -> Iterator[str]:
    for name, side in (("a", found.a), ("b", found.b)):
        place = f"{found.part} {found.metric}"
        if side.errors:
            yield f"{place}: left out because their request failed in {name}: {side.errors:,}"
        if side.unmatched:
            yield f"{place}: left out because only {name} has them: {side.unmatched:,}"
