"""What can go wrong, as types. A failure of a sample is a value, a failure of the run an exception.

EvaluationError          every message is one line and ends in the next step; only cli/ prints and exits
├── UsageError           the caller can mend it before anything starts: exit code 2
│   └── ResumeMismatch   the journal answers other questions than the ones now asked
├── RunFailed            the run cannot go on (the endpoint refuses everyone): exit code 1
└── RequestError         one request failed for good; the engine turns it into the sample's state
"""

from typing import Any, Literal, get_args

ErrorKind = Literal[
    "auth",
    "not_found",
    "rate_limit",
    "timeout",
    "connection",
    "server",
    "bad_reply",
    "context_length",
    "content_filter",
    "seed",
    "solver",
    "scorer",
]
ERROR_KINDS: tuple[str, ...] = get_args(ErrorKind)

FATAL_KINDS = frozenset({"auth", "not_found"})
"""Kinds that every other request would meet too: they stop the run at once."""
NEXT_STEPS = {
    "auth": "Give a key that it accepts in NEMO_API_KEY or as api_key of its service, then go on with --resume",
    "not_found": (
        "Mend the model's name or the URL and start again with --overwrite, or go on with --resume once it is served"
    ),
    "connection": "Go on with --resume once something answers at that URL",
}


class EvaluationError(Exception):
    """Base of all errors that a user is meant to read."""


class UsageError(EvaluationError):
    """Bad input, refused before anything is created."""


class ResumeMismatch(UsageError):
    """A journal was made with other settings than the ones now asked for."""


class RunFailed(EvaluationError):
    """The run as a whole cannot go on."""

    bundle: dict[str, Any] | None = None
    """What was finished until then."""

    @classmethod
    def for_everyone(cls, kind: str, message: str) -> "RunFailed":
        """An error that every other request would meet too, with the next step."""
        return cls(f"{message.rstrip('.')}. {NEXT_STEPS[kind]}")


class RequestError(EvaluationError):
    """A request to a model that failed after its retries.

    The message holds what the server said (first 2 kB, secrets masked).
    """

    def __init__(
        self, kind: ErrorKind, message: str, *, status: int | None = None, is_unreachable: bool = False
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.is_unreachable = is_unreachable
        """There was not even a connection."""

    @property
    def is_fatal(self) -> bool:
        return self.kind in FATAL_KINDS
