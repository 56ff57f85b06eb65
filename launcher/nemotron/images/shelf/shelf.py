"""The folder itself: find an image, put one there, free space."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from nemotron.errors import UsageError
from nemotron.images.shelf.claim import Claim, Patience, Say, claimed
from nemotron.images.shelf.names import claim_file, image_file, image_of_work, index_link, record_file, work_folder
from nemotron.images.shelf.record import Record, parse_record
from nemotron.images.shelf.shell import (
    ABSENT,
    FIND,
    FREE,
    LINK,
    LISTING,
    MAKE_FOLDERS,
    PUBLISH,
    ShelfFailed,
    must,
    sh,
)
from nemotron.transport.base import Session

HASH_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Found:
    """A name in the folder itself."""

    name: str
    kind: str
    """`f` a file, `d` a folder, `l` a link."""
    size: int
    modified: float
    target: str
    """Of a link."""


class Shelf:
    def __init__(self, session: Session, folder: str, patience: Patience | None = None) -> None:
        """`folder` is absolute, and need not exist."""
        self.session, self.folder, self._patience = session, folder.rstrip("/") or "/", patience

    def path(self, name: str) -> str:
        return f"{self.folder.rstrip('/')}/{name}"

    def find(self, digest: str, platform: str) -> str | None:
        """The name of the image of this digest, which may be an index's; None also for one that is not whole."""
        return self._find(image_file(digest), index_link(digest, platform))

    def find_link(self, name: str) -> str | None:
        """The name of the image that a link leads to."""
        return self._find(name, name)

    def _find(self, name: str, other: str) -> str | None:
        done = sh(self.session, FIND, self.folder, name, other)
        if done.code == ABSENT:
            return None
        found, size = must(done, self.session, f"looking into {self.folder}").split()
        record = self.record(found)
        return found if record is None or record.size == int(size) else None

    def record(self, image: str) -> Record | None:
        try:
            return parse_record(self.session.read(self.path(record_file(image))))
        except FileNotFoundError:
            return None

    def make(self) -> None:
        must(sh(self.session, MAKE_FOLDERS, self.folder), self.session, f"making {self.folder}")

    @contextmanager
    def claimed(self, image: str, say: Say) -> Iterator[tuple[Claim, str]]:
        """With a folder to work in, which is gone afterwards, as are those of makers that died."""
        with claimed(self.session, self.path(claim_file(image)), say, self._patience) as claim:
            self._sweep(image)
            work = self.path(work_folder(image, claim.token))
            try:
                must(sh(self.session, MAKE_FOLDERS, work), self.session, f"making {work}")
                yield claim, work
            finally:
                self.session.remove(work)

    def publish(self, made: str, record: Record, links: Sequence[str], claim: Claim) -> str:
        """Moves the file to its name, readable by all. Who sees an image sees its record too."""
        name = image_file(record.platform_digest)
        claim.check()
        self.session.write(self.path(record_file(name)), record.json, 0o644)
        must(sh(self.session, PUBLISH, made, self.path(name), timeout=HASH_SECONDS), self.session, f"moving {name}")
        index = [index_link(record.index_digest, record.platform)] if record.index_digest else []
        self.link([*index, *links], name, claim.token)
        return name

    def link(self, names: Sequence[str], target: str, token: str) -> None:
        for name in names:
            must(sh(self.session, LINK, self.folder, name, target, token), self.session, f"linking {self.path(name)}")

    def need(self, size: int, what: str) -> None:
        """Raises while there is less room than that."""
        free = (
            int(must(sh(self.session, FREE, self.folder), self.session, f"looking at {self.folder}").split()[3]) * 1024
        )
        if free < size:
            raise ShelfFailed(
                f"{self.folder} on {self.session.name} has {free / 1e9:.1f} GB free, and {what} takes about "
                f"{size / 1e9:.1f} GB: free some with `nel cache-sqsh prune`, or choose another folder."
            )

    def sha256(self, path: str) -> str:
        done = self.session.run(["sha256sum", path], timeout=HASH_SECONDS)
        return must(done, self.session, f"reading {path}").split()[0].lstrip("\\")

    def size(self, path: str) -> int:
        done = self.session.run(["stat", "-c", "%s", path])
        return int(must(done, self.session, f"looking at {path}"))

    def entries(self) -> tuple[list[Found], float]:
        """What is in it, and the time there."""
        done = sh(self.session, LISTING, self.folder)
        if done.code == ABSENT:
            raise UsageError(f"{self.folder} is no folder on {self.session.name}: check OUTPUT_PATH.")
        *lines, now = must(done, self.session, f"listing {self.folder}").splitlines()
        found = []
        for line in lines:
            if line.count("\t") == 4:  # else a name with a tab or a new line in it, which is none of ours
                kind, size, modified, name, target = line.split("\t")
                found.append(Found(name, kind, int(size), float(modified), target))
        return found, float(now)

    def _sweep(self, image: str) -> None:
        for found in self.entries()[0]:
            if found.kind == "d" and image_of_work(found.name) == image:
                self.session.remove(self.path(found.name))
