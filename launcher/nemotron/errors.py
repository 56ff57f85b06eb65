"""What can go wrong on the submitting side; every message is one line that ends in the next step.

LauncherError            only cli/ prints it and exits
├── UsageError           the caller can mend it; nothing was created: exit code 2
│   └── ProfileError     env.toml, or a profile in it, cannot be used as it stands
└── SubmitError          the backend refused or cannot be reached: exit code 1
    └── JobLimitReached  it takes no more jobs of this user for now
"""

from collections.abc import Iterable
from difflib import get_close_matches


class LauncherError(Exception):
    """Base of all errors that a user is meant to read."""

    exit_code = 1


class UsageError(LauncherError):
    """Bad input, refused before anything is created."""

    exit_code = 2


class ProfileError(UsageError):
    """A profile that is missing, incomplete or contradicts itself."""


class SubmitError(LauncherError):
    """A job that was fine but could not be started, asked about or stopped."""


class JobLimitReached(SubmitError):
    """As many jobs as the user may have at a time; later there is room again."""


def nearest(name: str, known: Iterable[str]) -> str:
    """` Did you mean 'base_en'?`, or nothing."""
    near = get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """`Unknown suite 'base_eng'. Did you mean 'base_en'? There are: base_en, direct.`"""
    names = sorted(known)
    exist = f" There are: {', '.join(names)}." if names else " There are none."
    return f"Unknown {kind} {name!r}.{nearest(name, names)}{exist}"
