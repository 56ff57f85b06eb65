"""What a job has left in its own folder, looked at only where it is needed, and once."""

from functools import cached_property

from nemotron.slurm.folder import LOG, MARKER
from nemotron.slurm.marker import Marker, parse_marker
from nemotron.transport.base import Session

LOG_END = 4096
OUT_OF_MEMORY = ("exceeded memory limit", "oom-kill", "oom_kill", "out of memory")
"""What Slurm's step daemon writes into a log when it, or the kernel, kills for memory."""


class Traces:
    def __init__(self, session: Session, folder: str) -> None:
        self._session, self._folder = session, folder

    @cached_property
    def marker(self) -> Marker | None:
        """None also where the folder is gone or closed to this user."""
        content = self._read(MARKER)
        return None if content is None else parse_marker(content)

    @property
    def over(self) -> Marker | None:
        """The marker, once it says that the job has ended."""
        return self.marker if self.marker is not None and self.marker.is_over else None

    @cached_property
    def ran_out_of_memory(self) -> bool:
        """Where Slurm calls it a failure with signal 9, as it does without cgroups."""
        try:
            size = next((entry.size for entry in self._session.walk(self._folder) if entry.path == LOG), 0)
        except OSError:
            return False
        last_words = (self._read(LOG, max(0, size - LOG_END)) or b"").decode("utf-8", "replace").lower()
        return any(words in last_words for words in OUT_OF_MEMORY)

    def _read(self, name: str, offset: int = 0) -> bytes | None:
        try:
            return self._session.read(f"{self._folder}/{name}", offset)
        except OSError:
            return None
