"""What a look ahead has found: one line, what, why it matters, what to do."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    why: str
    action: str
    severity: Literal["stop", "note"] = "stop"
    """A stop would fail the job; a note is something that could not be looked at."""

    def __str__(self) -> str:
        return f"{self.what}: {self.why}; {self.action}."
