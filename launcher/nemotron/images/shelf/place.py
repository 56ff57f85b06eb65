"""A folder as users write it, made absolute by the machine that has it: `~`, `~user`, $NAME and ${NAME} only."""

import os
import re

from nemotron.errors import UsageError
from nemotron.transport.base import Session

_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_HOME = re.compile(r"~([A-Za-z0-9_.-]*)(?=/|$)")


def expanded(session: Session, text: str) -> str:
    if not text or not text.isprintable():
        raise UsageError(f"OUTPUT_PATH {text!r} is no folder: write an absolute path; ~ and $NAME are expanded there.")
    path = _VARIABLE.sub(lambda match: _variable(session, match[1] or match[2], text), _with_home(session, text))
    if session.is_here:
        return os.path.abspath(path)  # noqa: PTH100 - Path.absolute keeps `..`
    if not path.startswith("/"):
        raise UsageError(
            f"OUTPUT_PATH {text!r} is relative, and {session.name} would read it otherwise than this machine: "
            "write an absolute path, or begin it with ~ or $NAME."
        )
    return os.path.normpath(path)


def _with_home(session: Session, text: str) -> str:
    if (match := _HOME.match(text)) is None:
        return text
    if not match[1]:
        return _variable(session, "HOME", text) + text[1:]
    fields = session.run(["getent", "passwd", match[1]]).stdout.split(":")
    if len(fields) < 7:
        raise UsageError(f"OUTPUT_PATH {text!r}: {session.name} knows no user {match[1]!r}.")
    return fields[5] + text[match.end() :]


def _variable(session: Session, name: str, text: str) -> str:
    value = session.run(["printenv", name]).stdout.rstrip("\n")
    if not value:
        where = "" if session.is_here else " for commands that come through ssh"
        raise UsageError(f"OUTPUT_PATH {text!r}: ${name} is not set on {session.name}{where}: write its value.")
    return value
