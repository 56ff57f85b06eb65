"""Where a file of another machine may come to lie at home: below one folder, whatever that machine says."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from nemotron.errors import SubmitError, UsageError
from nemotron.transport.base import Entry

PARTS = ".fetching"
"""Folder for what has not arrived whole yet; gone when all has."""
SAME_SECONDS = 0.001


def place(target: Path, entry: Entry) -> Path:
    parts = PurePosixPath(entry.path).parts
    if not parts or parts[0].startswith("/") or ".." in parts or "\0" in entry.path:
        raise SubmitError(f"The other machine names a file {entry.path!r}, outside of its folder: nothing was fetched.")
    folder = target
    for part in parts[:-1]:
        folder /= part
        if folder.is_symlink():
            raise UsageError(f"{folder} is a link, which is not followed: fetch into another folder with --to.")
    return target.joinpath(*parts)


def is_part(path: str) -> bool:
    """Whether it is none of the other machine's own files, as it was fetched into as well."""
    return PurePosixPath(path).parts[:1] == (PARTS,)


def is_here(path: Path, entry: Entry) -> bool:
    """By size and time, which a file that was fetched has from the original."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return found.st_size == entry.size and abs(found.st_mtime - entry.modified) < SAME_SECONDS


@contextmanager
def parts_of(target: Path) -> Iterator[Path]:
    """The folder for parts, for one process at a time. After an error it stays, and the next time goes on from it."""
    parts = target / PARTS
    parts.mkdir(parents=True, exist_ok=True)
    lock = os.open(parts / "lock", os.O_CREAT | os.O_RDWR, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"Somebody else fetches into {target} just now: wait, or give another --to.") from None
        yield parts
        shutil.rmtree(parts)
    finally:
        os.close(lock)
