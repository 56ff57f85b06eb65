"""Checks in their order: one that fails stops only those that need it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from nemotron.doctor.finding import Finding, Severity
from nemotron.errors import LauncherError


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    look: Callable[[], Iterator[Finding]]
    needs: tuple[str, ...] = ()
    """Names of checks without whose success there is nothing to look at."""


@dataclass(frozen=True, slots=True)
class Found:
    check: str
    finding: Finding


def examine(checks: Sequence[Check]) -> Iterator[Found]:
    """As it is found, since some checks take a while."""
    failed: list[str] = []
    for check in checks:
        obstacles = [name for name in check.needs if name in failed]
        findings = _skipped(obstacles) if obstacles else _findings(check)
        for finding in findings:
            if finding.severity in (Severity.FAIL, Severity.SKIP) and check.name not in failed:
                failed.append(check.name)
            yield Found(check.name, finding)


def _findings(check: Check) -> Iterator[Finding]:
    """Whatever cannot be asked is a finding, and not the end of the examination."""
    try:
        yield from check.look()
    except LauncherError as error:
        yield Finding(Severity.FAIL, str(error))
    except OSError as error:
        yield Finding(Severity.FAIL, f"{error.filename or 'input/output'}: {error.strerror or error}")


def _skipped(obstacles: Sequence[str]) -> Iterator[Finding]:
    yield Finding(Severity.SKIP, f"not looked at, because {' and '.join(obstacles)} failed")
