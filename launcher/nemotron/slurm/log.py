"""A growing file on the cluster, line by line."""

import math
import time
from collections.abc import Callable, Iterator

from nemotron.transport.base import Session, TransportError

CHUNK = 1 << 20
OVERLAP = 64
"""So many bytes are read again each time: where they have changed, another file has taken the place of the first."""
LOOK_SECONDS = 1.0
ASK_SECONDS, LONGEST_ASK_SECONDS = 5.0, 30.0
"""Between two questions whether the job is over: the file is cheap to look at, a busy Slurm is not, least of all for a
job that waits in the queue and prints nothing."""
RETRY_SECONDS = 10.0
OUTAGE_SECONDS = 900.0
"""So long a machine may be out of reach: its job goes on meanwhile."""


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
    file, asking, pending = _Growing(session, path), _Asking(is_over, clock), b""
    is_last, reached = not follow, clock()
    while True:
        try:
            new, was_last = file.more(), is_last
            is_last = is_last or asking.says_so(has_news=bool(new))
        except TransportError:
            if not follow or clock() - reached > OUTAGE_SECONDS:
                raise
            sleep(RETRY_SECONDS)
            continue
        reached = clock()
        *whole, pending = (pending + new).split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in whole)
        if not new and was_last:
            break
        if not new and not is_last:
            sleep(LOOK_SECONDS)
    if pending:
        yield pending.decode("utf-8", "replace")


class _Asking:
    """Whether the job is over; less and less often while nothing is printed."""

    def __init__(self, is_over: Callable[[], bool], clock: Callable[[], float]) -> None:
        self._is_over, self._clock = is_over, clock
        self._pause, self._asked = ASK_SECONDS, -math.inf

    def says_so(self, has_news: bool) -> bool:
        if has_news:
            self._pause = ASK_SECONDS
            return False
        if self._clock() - self._asked < self._pause:
            return False
        if self._asked > -math.inf:
            self._pause = min(LONGEST_ASK_SECONDS, self._pause * 1.5)
        self._asked = self._clock()
        return self._is_over()


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
