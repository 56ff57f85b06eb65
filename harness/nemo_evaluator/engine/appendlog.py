"""An append-only file of lines that become durable in groups, off the event loop."""

import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from nemo_evaluator.errors import RunFailed

GROUP_LINES = 256
TAIL_BYTES = 1 << 16
GROUP_SECONDS = 0.1
BACKLOG_BYTES = 16 << 20
"""Lines waiting for the disk; beyond this, `append` callers should wait for their entry."""


class Entry(NamedTuple):
    """Where a line stands, and the future of its group."""

    offset: int
    length: int
    group: asyncio.Future[None]

    async def durable(self) -> None:
        """Once the line is on disk. Raises RunFailed if it could not be written."""
        if not self.group.done():
            await asyncio.shield(self.group)  # one waiter that is cancelled must not cancel the others
        self.group.result()


class AppendLog:
    """One writer, one file. A group of lines is written and fsynced together: at most 256 lines or 100 ms after its
    first line. A torn last line, left by a crash, is cut off: every line of the file is whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._backlog = 0
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        self._end = self._cut_torn_line()
        self._lines: list[bytes] = []
        self._group: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._writer = ThreadPoolExecutor(1, thread_name_prefix=path.name)
        self._failure: RunFailed | None = None

    def append(self, line: bytes) -> Entry:
        """Queue `line` (which ends in a newline). Raises RunFailed once the disk has refused a group."""
        if self._failure:
            raise self._failure
        loop = asyncio.get_running_loop()
        if self._group is None:
            self._group = loop.create_future()
            self._timer = loop.call_later(GROUP_SECONDS, self._commit)
        entry = Entry(self._end, len(line), self._group)
        self._end += len(line)
        self._backlog += len(line)
        self._lines.append(line)
        if len(self._lines) >= GROUP_LINES:
            self._commit()
        return entry

    @property
    def is_backed_up(self) -> bool:
        return self._backlog > BACKLOG_BYTES

    def flush(self) -> None:
        """Write what is queued now."""
        self._commit()

    def read(self, offset: int, length: int) -> bytes:
        """A line that is already durable."""
        return os.pread(self._fd, length, offset)

    async def close(self) -> None:
        """Commit what is queued. Raises RunFailed if any line could not be written."""
        try:
            if self._group is not None:
                last = self._group
                self._commit()
                await asyncio.shield(last)
            if self._failure:
                raise self._failure
        finally:
            self._writer.shutdown()
            os.close(self._fd)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.close()
        except RunFailed:
            if error is None:
                raise

    def _commit(self) -> None:
        lines, self._lines = self._lines, []
        group, self._group = self._group, None
        if self._timer:
            self._timer.cancel()
        if group is None:
            return
        block = b"".join(lines)
        written = asyncio.get_running_loop().run_in_executor(self._writer, self._write, block)
        written.add_done_callback(lambda done: self._committed(done, group, len(block)))

    def _committed(self, written: asyncio.Future[None], group: asyncio.Future[None], size: int) -> None:
        self._backlog -= size
        error = written.exception()
        if error is None:
            group.set_result(None)
            return
        self._failure = self._failure or RunFailed(
            f"Cannot write {self.path}: {error}. What was written before is safe: "
            "make room, then run again with --resume."
        )
        group.set_exception(self._failure)
        group.exception()  # whoever waits gets it; nobody waiting is no reason for a warning at exit

    def _write(self, block: bytes) -> None:
        if self._failure:
            raise self._failure
        start, written = os.lseek(self._fd, 0, os.SEEK_END), 0
        try:
            while written < len(block):
                written += os.write(self._fd, memoryview(block)[written:])
            os.fsync(self._fd)
        except OSError:
            whole_lines = block.rfind(b"\n", 0, written) + 1
            os.ftruncate(self._fd, start + whole_lines)
            raise

    def _cut_torn_line(self) -> int:
        end = size = os.lseek(self._fd, 0, os.SEEK_END)
        while end:
            start = max(0, end - TAIL_BYTES)
            newline = os.pread(self._fd, end - start, start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            os.ftruncate(self._fd, end)
        return end


def scan(path: Path) -> Iterator[tuple[int, bytes]]:
    """Offset and bytes of each whole line."""
    offset = 0
    with path.open("rb", buffering=4 << 20) as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield offset, line
            offset += len(line)
