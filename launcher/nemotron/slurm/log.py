"""A growing file on the cluster, line by line."""

import time
from collections.abc import Callable, Iterator

from nemotron.transport.base import Session

CHUNK = 1 << 20
OVERLAP = 64
"""So many bytes are read again each time: where they have changed, another file has taken the place of the first."""
LOOK_SECONDS = 1.0
ASK_SECONDS = 5.0
"""Between two questions whether the job is over: the file is cheap to look at, a busy Slurm is not."""


def lines(
    session: Session,
    path: str,
    follow: bool,
    is_over: Callable[[], bool],
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[str]:
    """Without their line ends. A file that is not there yet has none; with `follow`, until the job is over and
    everything it wrote before has been seen."""
    file, pending = _Growing(session, path), b""
    asked, is_last = clock() - ASK_SECONDS, not follow
    while True:
        new = file.more()
        *whole, pending = (pending + new).split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in whole)
        if new:
            continue
        if is_last:
            break
        if clock() - asked >= ASK_SECONDS:
            is_last, asked = is_over(), clock()
        if not is_last:
            sleep(LOOK_SECONDS)
    if pending:
        yield pending.decode("utf-8", "replace")


class _Growing:
    """What is new in a file since the last look."""

    def __init__(self, session: Session, path: str) -> None:
        self._session, self._path = session, path
        self._offset, self._tail = 0, b""

    def more(self) -> bytes:
        seen = len(self._tail)
        found = self._read(self._offset - seen)
        if found[:seen] != self._tail:
            self._offset, self._tail, seen = 0, b"", 0
            found = self._read(0)
        new = found[seen:]
        self._offset += len(new)
        self._tail = found[-OVERLAP:]
        return new

    def _read(self, offset: int) -> bytes:
        try:
            return self._session.read(self._path, offset, CHUNK)
        except FileNotFoundError:
            return b""
