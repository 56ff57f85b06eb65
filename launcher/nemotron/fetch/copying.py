"""A folder of another machine, copied file by file: what is here already is not asked for again."""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
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
    refused: tuple[str, ...] = ()
    """May not be read."""


def everything(_: str) -> bool:
    return True


def copy_folder(
    session: Session,
    source: str,
    target: Path,
    *,
    wants: Wants = everything,
    chunk: int = CHUNK,
    sleep: Callable[[float], None] = time.sleep,
) -> Copied:
    """Looks again when it is through: files that were written meanwhile are fetched again. Deletes nothing."""
    with parts_of(target) as parts:
        copying = _Copying(session, source, target, wants, parts, chunk)
        found, changed = copying.look()
        kept, size, fetched = len(found) - len(changed), 0, set[str]()
        for number in range(PASSES):
            if not changed:
                break
            if number:
                sleep(FRESH_SECONDS)
            size += copying.fetch_all(changed)
            fetched |= {entry.path for entry in changed} - copying.refused
            _, changed = copying.look()
    unsettled = tuple(entry.path for entry in changed)
    return Copied(len(fetched), size, kept, unsettled, tuple(sorted(copying.refused)))


@dataclass(slots=True)
class _Copying:
    session: Session
    source: str
    target: Path
    wants: Wants
    parts: Path
    chunk: int
    refused: set[str] = field(default_factory=set)
    is_over: threading.Event = field(default_factory=threading.Event)
    """Whatever is in flight may end."""

    def look(self) -> tuple[list[Entry], list[Entry]]:
        """All files that are wanted, and those that are not here as they are there."""
        entries = [entry for entry in self.session.walk(self.source) if self._is_wanted(entry.path)]
        places = {entry: place(self.target, entry) for entry in entries}
        for entry, path in places.items():
            if entry.is_folder:
                path.mkdir(parents=True, exist_ok=True)
        files = [entry for entry in entries if not entry.is_folder]
        return files, [entry for entry in files if not is_here(places[entry], entry)]

    def _is_wanted(self, path: str) -> bool:
        return path not in self.refused and not is_part(path) and self.wants(path)

    def fetch_all(self, entries: Sequence[Entry]) -> int:
        """How many bytes came."""
        fresh = self._clock() - FRESH_SECONDS
        with ThreadPoolExecutor(AT_ONCE, "fetch") as pool:
            try:
                return sum(pool.map(lambda entry: self._fetch(entry, is_fresh=entry.modified >= fresh), entries))
            except BaseException:
                self.is_over.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _clock(self) -> float:
        """The other machine's, which dates its files."""
        return float(self.session.run(["date", "+%s"]).stdout)

    def _fetch(self, entry: Entry, *, is_fresh: bool) -> int:
        part = self.parts / hashlib.sha256(repr(entry).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        try:
            came, is_whole = self._continue(part, entry)
        except FileNotFoundError:
            return 0  # it was there, and is no more
        except PermissionError as error:
            if error.filename != self._path(entry):
                raise
            self.refused.add(entry.path)
            return 0
        if is_whole:
            settled = 0.0 if is_fresh else entry.modified  # 0: it is looked at once more
            os.utime(part, (settled, settled))
            target = place(self.target, entry)
            target.parent.mkdir(parents=True, exist_ok=True)
            part.replace(target)
        return came

    def _continue(self, part: Path, entry: Entry) -> tuple[int, bool]:
        """How many bytes came, and whether the part is whole now."""
        with part.open("ab+") as file:
            start = offset = self._kept(file.fileno(), entry)
            os.truncate(file.fileno(), start)
            while offset < entry.size and not self.is_over.is_set():
                new = self.session.read(self._path(entry), offset, min(self.chunk, entry.size - offset))
                if not new:
                    break  # shorter than it was, which the next look sees
                file.write(new)
                offset += len(new)
            file.flush()
            os.fsync(file.fileno())
        return offset - start, offset == entry.size

    def _kept(self, part: int, entry: Entry) -> int:
        """How much of a part can stay."""
        have = min(os.fstat(part).st_size, entry.size)
        if have <= OVERLAP:
            return 0
        there = self.session.read(self._path(entry), have - OVERLAP, OVERLAP)
        return have if there == os.pread(part, OVERLAP, have - OVERLAP) else 0

    def _path(self, entry: Entry) -> str:
        return f"{self.source}/{entry.path}"
