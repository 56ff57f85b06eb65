"""How a command ends: what a user is meant to read is one line on stderr, and its next step."""

import errno
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from nemo_evaluator.cli.lasting import open_missing_streams
from nemo_evaluator.errors import EvaluationError, UsageError

USAGE, FAILED, INTERRUPTED = 2, 1, 130


def run(command: click.Command, name: str, arguments: Sequence[str] | None = None) -> NoReturn:
    """Exits with what the command returned; any other error than these is a defect, and keeps its traceback."""
    open_missing_streams()
    try:
        code = command.main(None if arguments is None else list(arguments), prog_name=name, standalone_mode=False)
    except EvaluationError as error:
        _end(str(error), USAGE if isinstance(error, UsageError) else FAILED)
    except click.ClickException as error:
        _end_usage(error)
    except click.Abort:
        sys.exit(INTERRUPTED)
    except OSError as error:
        if error.errno == errno.EPIPE:  # whoever read our output has gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(FAILED)
        _end(f"{error.filename or 'input/output'}: {error.strerror or error}.", FAILED)
    sys.exit(code if isinstance(code, int) else 0)


def _end_usage(error: click.ClickException) -> NoReturn:
    said = error.format_message()
    if "\n" in said:  # the help, for a group without a command
        click.echo(said, err=True)
        sys.exit(error.exit_code)
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context and isinstance(context.command, click.Group):
        said += f" There are {', '.join(context.command.list_commands(context))}."
    _end(f"{said.rstrip('.')}; see `{context.command_path if context else 'nel'} --help`.", error.exit_code)


def _end(message: str, code: int) -> NoReturn:
    click.echo(f"Error: {message}", err=True)
    sys.exit(code)
