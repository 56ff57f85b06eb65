"""The command: reads the plan, prints, and tells by its exit code what became of it.

0   every task is ok
1   a task failed, or the results could not be kept
2   refused, nothing was started
75  stopped by the scheduler, a time limit or a lost terminal: the same job goes on when it is started again
130 stopped by Ctrl-C
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Mapping, TextIO

from nemo_evaluator.direct.errors import Refused, StorageFailed
from nemo_evaluator.direct.plan import read_plan
from nemo_evaluator.direct.run import FAILED, run
from nemo_evaluator.direct.signals import Stop, Stopped

REFUSED = 2


def main(arguments: list[str], environ: Mapping[str, str] = os.environ) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python runner.pyz plan.json", file=sys.stderr)
        return REFUSED
    if int(environ.get("SLURM_PROCID") or 0) > 0:
        say(f"task {environ['SLURM_PROCID']} of this Slurm step leaves the evaluation to task 0")
        return 0
    accept_any_text(sys.stdout)
    stop = Stop()
    stop.listen()
    try:
        return run(read_plan(Path(arguments[0])), environ, stop, say)
    except Refused as error:
        return give_up(str(error), REFUSED)
    except StorageFailed as error:
        return give_up(str(error), FAILED)
    except OSError as error:
        return give_up(f"{error.filename}: {error.strerror}: mend it, then go on with resume=true.", FAILED)
    except Stopped:
        return stop.exit_code


def accept_any_text(stream: TextIO) -> None:
    """In whatever encoding the image's locale asks for."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def say(line: str) -> None:
    """A reader who has gone ends nothing."""
    try:
        print(line, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def give_up(message: str, code: int) -> int:
    for line in message.splitlines():
        print(f"Error: {line}", file=sys.stderr)
    return code
