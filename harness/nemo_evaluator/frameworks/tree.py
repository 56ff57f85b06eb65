"""A child process and everything it has started."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


def descendants(pid: int) -> Iterator[int]:
    """The children first, then theirs; nothing where there is no /proc."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:  # it has ended
        return
    for child in children:
        yield child
        yield from descendants(child)


def terminate(pid: int, number: int = signal.SIGTERM) -> None:
    """A shell does not pass signals on, so every process of the tree gets its own."""
    for member in [*descendants(pid), pid]:
        try:
            os.kill(member, number)
        except ProcessLookupError:
            continue


def resident_bytes(pid: int) -> int:
    """Of the whole tree, what it shares counted in each."""
    return sum(_resident(member) for member in [pid, *descendants(pid)])


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0
