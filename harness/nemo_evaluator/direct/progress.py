"""progress.json: how far the run is, read from the harness's own progress bars and files, rewritten while it works."""

from __future__ import annotations

import re
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Callable

from nemo_evaluator.direct.atomic import write_json
from nemo_evaluator.direct.errors import StorageFailed
from nemo_evaluator.direct.manifest import now

SCHEMA_VERSION = 1
NAME = "progress.json"
PERIOD_SECONDS = 3.0
WINDOW_SECONDS = 60.0
SILENCE_SECONDS = 600.0
"""Without a word from the harness for so long, we say so."""
LONGEST_LINE = 4096
BAR = re.compile(rb"([^\r\n]*?)\d+%\|[^|\r\n]*\| *(\d+)/(\d+) \[")
ANSWERED = re.compile(rb"Request completed\b.*?status_code=2\d\d")
"""A line of the adapter in front of the endpoint."""
ERROR = re.compile(
    rb"API request failed|Request completed\b.*?status_code=[45]\d\d|\bERROR\b|\[E 2\d{3}-|Traceback \(most recent"
)


class Bars:
    """Reads progress bars out of a stream. Those that count requests win over others."""

    def __init__(self) -> None:
        self.done: int | None = None
        self.total: int | None = None
        self.answered = 0
        self.errors = 0
        self._counts_requests = False
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *lines, self._rest = re.split(rb"[\r\n]", self._rest + data)
        self._rest = self._rest[-LONGEST_LINE:]
        for line in lines:
            self._read(line)

    def _read(self, line: bytes) -> None:
        self.errors += bool(ERROR.search(line))
        self.answered += bool(ANSWERED.search(line))
        bar = BAR.match(line[-LONGEST_LINE:])
        if bar is None:
            return
        counts_requests = b"request" in bar[1].lower() and b"cached" not in bar[1].lower()
        if counts_requests or not self._counts_requests:
            self._counts_requests = counts_requests
            self.done, self.total = int(bar[2]), int(bar[3])


class Rate:
    """Done a second over the last minute."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._points: deque[tuple[float, int]] = deque()

    def note(self, done: int) -> None:
        moment = self._clock()
        if self._points and done < self._points[-1][1]:
            self._points.clear()  # a new bar
        self._points.append((moment, done))
        while len(self._points) > 2 and moment - self._points[0][0] > WINDOW_SECONDS:
            self._points.popleft()

    @property
    def per_second(self) -> float | None:
        if len(self._points) < 2:
            return None
        (first, before), (last, after) = self._points[0], self._points[-1]
        return (after - before) / (last - first) if last > first else None


class Progress:
    """Of the whole run, a task at a time. `state` is starting, running, stopped or finished."""

    def __init__(
        self,
        folder: Path,
        job: str | None,
        tasks_total: int,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = folder / NAME
        self._job = job
        self._tasks_total = tasks_total
        self._say = say
        self._clock = clock
        self._written, self._state = clock(), "running"
        self.tasks_done = 0
        self.begin(None)

    def begin(self, task: str | None, own_counts: tuple[Path, ...] = ()) -> None:
        """`own_counts` are files in which a harness may count its samples itself."""
        self._task = task
        self._own_counts = own_counts
        self.bars = Bars()
        self._rate = Rate(self._clock)
        self._heard = self._told = self._clock()

    def hear(self, data: bytes) -> None:
        self._heard = self._told = self._clock()
        self.bars.feed(data)

    def tick(self, state: str = "running") -> None:
        """A change of state is written at once: there may be no other time for it."""
        self._break_silence()
        if state != self._state or self._clock() - self._written >= PERIOD_SECONDS:
            with suppress(StorageFailed):  # no reason to end a harness; the files that matter report a full disk
                self.write(state)

    def write(self, state: str) -> None:
        self._written, self._state = self._clock(), state
        done = self._done()
        if done is not None:
            self._rate.note(done)
        write_json(
            self._path,
            {
                "schema_version": SCHEMA_VERSION,
                "updated": now(),
                "state": state,
                "job": self._job,
                "tasks_done": self.tasks_done,
                "tasks_total": self._tasks_total,
                "task": self._task,
                "samples_done": done,
                "samples_total": self.bars.total,
                "requests_per_second": self._rounded(self._rate.per_second),
                "errors": self.bars.errors,
                "eta_seconds": self._rounded(self._eta(done)),
                "silent_seconds": self._rounded(self._clock() - self._heard),
            },
        )

    def _done(self) -> int | None:
        counts = [count for count in map(_read_count, self._own_counts) if count is not None]
        if counts:
            return max(counts)
        return self.bars.done or self.bars.answered or self.bars.done  # a bar moves late, at its own pace

    def _eta(self, done: int | None) -> float | None:
        rate, total = self._rate.per_second, self.bars.total
        if done is None or total is None or not rate:
            return None
        return max(0, total - done) / rate

    def _break_silence(self) -> None:
        if self._clock() - self._told >= SILENCE_SECONDS:
            self._told = self._clock()
            minutes = int((self._clock() - self._heard) / 60)
            self._say(f"[{self._task}] has said nothing for {minutes} min; it is alive, see {self._path} and its log")

    @staticmethod
    def _rounded(value: float | None) -> float | None:
        return None if value is None else round(value, 2)


def _read_count(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
