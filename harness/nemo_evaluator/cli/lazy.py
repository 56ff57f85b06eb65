"""Command groups that import a command only when it is called."""

import importlib
from collections.abc import Mapping
from typing import NamedTuple

import click


class Lazy(NamedTuple):
    """Where a command lives ("module:attribute") and its line in the help, which must not need the module."""

    target: str
    summary: str


class LazyGroup(click.Group):
    def __init__(self, name: str, lazy: Mapping[str, Lazy], help: str) -> None:
        super().__init__(name, help=help)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return None
        module, attribute = self._lazy[cmd_name].target.split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in self._lazy.items()])
