"""What an examination finds, a line each."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    OK = "ok"
    WARN = "warn"
    """An evaluation may run all the same."""
    FAIL = "fail"
    SKIP = "skip"
    """Could not be looked at, because something else failed."""


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Severity
    what: str
    action: str = ""
    """What to do about it; empty where all is well."""
    code: str = ""
    """For programs, where one check can find several things."""

    def __str__(self) -> str:
        return f"{self.what}: {self.action}" if self.action else self.what


def ok(what: str) -> Finding:
    return Finding(Severity.OK, what)


def warn(what: str, action: str, code: str = "") -> Finding:
    return Finding(Severity.WARN, what, action, code)


def fail(what: str, action: str, code: str = "") -> Finding:
    return Finding(Severity.FAIL, what, action, code)
