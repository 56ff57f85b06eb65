"""A folder of another machine, copied file by file: what is here already is not asked for again."""

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from nemotron.fetch.place import is_here, is_part, parts_of, place
from nemotron.transport.base import Entry, Session

AT_ONCE = 8
"""Files in flight: small ones cost nothing but waiting."""
CHUNK = 1 << 22
OVERLAP = 64
"""So much of a part is asked for again, to see that the rest belongs to it."""
PASSES = 3
FRESH_SECONDS = 2.0
"""Times have whole seconds over SFTP: a file this young may be written again and look the same."""

Wants = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Copied:
    files: int
    size: int
    kept: int
    """Were here already."""
    unsettled: tuple[str, ...] = ()
    """Were being written the whole time; what is here is one of their states."""


def everything(_: str) -> bool:
    return True


def copy_folder(
    session: Session,
    source: str,
    target: Path,
    *,
    wants: Wants = everything,
    sleep: Callable[[float], None] = time.sleep,
) -> Copied:
    """Looks again when it is through: files that were written meanwhile are fetched again. Deletes nothing."""
    with parts_of(target) as parts:
        found, changed = _look(session, source, target, wants)
        kept, total, size = len(found) - len(changed), set[str](), 0
        for number in range(PASSES):
            if not changed:
                break
            if number:
                sleep(FRESH_SECONDS)
            now = _clock(session)
            size += sum(_fetch_all(session, source, target, parts, changed, now))
            total |= {entry.path for entry in changed}
            found, changed = _look(session, source, target, wants)
    return Copied(len(total), size, kept, tuple(entry.path for entry in changed))


def _look(session: Session, source: str, target: Path, wants: Wants) -> tuple[list[Entry], list[Entry]]:
    """All files that are wanted, and those that are not here as they are there."""
    entries = [entry for entry in session.walk(source) if wants(entry.path) and not is_part(entry.path)]
    places = {entry: place(target, entry) for entry in entries}
    for entry, path in places.items():
        if entry.is_folder:
            path.mkdir(parents=True, exist_ok=True)
    files = [entry for entry in entries if not entry.is_folder]
    return files, [entry for entry in files if not is_here(places[entry], entry)]


def _clock(session: Session) -> float:
    """The other machine's, which dates its files."""
    return float(session.run(["date", "+%s"]).stdout)


def _fetch_all(
    session: Session, source: str, target: Path, parts: Path, entries: Sequence[Entry], now: float
) -> list[int]:
    is_over = threading.Event()

    def fetch(entry: Entry) -> int:
        with contextlib.suppress(FileNotFoundError):  # it was there, and is no more
            return _fetch(session, f"{source}/{entry.path}", entry, place(target, entry), parts, now, is_over)
        return 0

    with ThreadPoolExecutor(AT_ONCE, "fetch") as pool:
        try:
            return list(pool.map(fetch, entries))
        except BaseException:
            is_over.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _fetch(
    session: Session, path: str, entry: Entry, target: Path, parts: Path, now: float, is_over: threading.Event
) -> int:
    part = parts / hashlib.sha256(repr(entry).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    with part.open("ab+") as file:
        start = offset = _continued(session, path, entry, file.fileno())
        os.truncate(file.fileno(), start)
        while offset < entry.size:
            chunk = session.read(path, offset, min(CHUNK, entry.size - offset))
            file.write(chunk)
            offset += len(chunk)
            if not chunk or is_over.is_set():
                return offset - start  # shorter than it was, which the next look sees; or enough
        file.flush()
        os.fsync(file.fileno())
    settled = entry.modified if entry.modified < now - FRESH_SECONDS else 0.0  # 0: it is looked at once more
    os.utime(part, (settled, settled))
    target.parent.mkdir(parents=True, exist_ok=True)
    part.replace(target)
    return offset - start


def _continued(session: Session, path: str, entry: Entry, part: int) -> int:
    """How much of a part can stay."""
    have = min(os.fstat(part).st_size, entry.size)
    if have <= OVERLAP:
        return 0
    same = session.read(path, have - OVERLAP, OVERLAP) == os.pread(part, OVERLAP, have - OVERLAP)
    return have if same else 0
