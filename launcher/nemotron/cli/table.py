"""Rows for a person: a table on a terminal, aligned columns elsewhere."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table

Rows = Sequence[Sequence[str]]


def show(head: Sequence[str], rows: Rows) -> None:
    if sys.stdout.isatty():
        from rich.console import Console

        Console().print(rich_table(head, rows))
        return
    for line in aligned(head, rows):
        click.echo(line)


def aligned(head: Sequence[str], rows: Rows) -> list[str]:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)
    ]


def rich_table(head: Sequence[str], rows: Rows) -> "Table":
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(*head, box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*map(escape, row))
    return table
