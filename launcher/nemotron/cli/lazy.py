"""Commands whose modules are imported when they are called, so that help and errors come at once."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass

import click


@dataclass(frozen=True, slots=True)
class Later:
    module: str
    attribute: str
    summary: str


class Commands(click.Group):
    def __init__(self, name: str, help: str, later: Mapping[str, Later]) -> None:
        super().__init__(name, help=help)
        self._later = later

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._later)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if (later := self._later.get(cmd_name)) is None:
            return None
        command: click.Command = getattr(importlib.import_module(later.module), later.attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """From the summaries; click's own would import every module."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, later.summary) for name, later in self._later.items()])
