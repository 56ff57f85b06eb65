"""The two ways to make a .sqsh where it is wanted: built here and brought there, or imported there by enroot."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import nemotron
from nemotron.images.manifests import Manifest
from nemotron.images.progress import Progress
from nemotron.images.reference import Reference, spelled
from nemotron.images.registry import Registry
from nemotron.images.shelf.shelf import Shelf
from nemotron.images.shelf.shell import WRITE_AT, ShelfFailed, must, sh
from nemotron.images.sqsh.build import build
from nemotron.images.sqsh.squashfs import find_mksquashfs, version_of
from nemotron.transport.base import Session, TransportError

Method = Literal["enroot", "native"]
Mode = Literal["login", "srun"]
Say = Callable[[str], None]

MADE = "image.sqsh"
UNPACKED = 3
"""A .sqsh holds its data as they are, which is two to three times what was downloaded."""
CHUNK = 8 << 20
PIECE_SECONDS = 600.0
ATTEMPTS = 5
IMPORT_SECONDS = 6 * 3600.0
SRUN_SETTINGS = {
    "SLURM_ACCOUNT": "--account",
    "SLURM_PARTITION": "--partition",
    "SLURM_QOS": "--qos",
    "SLURM_TIMELIMIT": "--time",
}
"""What srun reads from its environment, which does not travel to a login node by itself."""


@dataclass(frozen=True, slots=True)
class Wanted:
    image: Reference
    """By the digest of the platform's manifest."""
    manifest: Manifest
    platform: str


@dataclass(frozen=True, slots=True)
class Made:
    path: str
    sha256: str


class Maker(Protocol):
    @property
    def tool(self) -> str:
        """For the record."""

    def make(self, wanted: Wanted, shelf: Shelf, work: str, say: Say) -> Made:
        """A whole .sqsh in the folder `work` of the shelf."""


@dataclass(frozen=True, slots=True)
class Native:
    registry: Registry
    environ: Mapping[str, str]

    @property
    def tool(self) -> str:
        return f"nemotron {nemotron.__version__}, mksquashfs {version_of(find_mksquashfs(self.environ))}"

    def make(self, wanted: Wanted, shelf: Shelf, work: str, say: Say) -> Made:
        find_mksquashfs(self.environ)
        needed = wanted.manifest.size * UNPACKED
        if shelf.session.is_here:
            shelf.need(wanted.manifest.size + needed, str(wanted.image))
            return self._build(wanted, Path(work), say)
        shelf.need(needed, str(wanted.image))
        with tempfile.TemporaryDirectory(prefix="nemotron-sqsh-", dir=self.environ.get("TMPDIR")) as folder:
            _need_here(Path(folder), wanted.manifest.size + needed)
            built = self._build(wanted, Path(folder), say)
            say(f"uploading {Path(built.path).stat().st_size / 1e6:,.0f} MB to {shelf.session.name}")
            return upload(built, shelf, f"{work}/{MADE}", say)

    def _build(self, wanted: Wanted, folder: Path, say: Say) -> Made:
        layers = folder / "layers"
        layers.mkdir()
        build(self.registry, wanted.image, wanted.manifest, folder / MADE, layers, self.environ, say)
        shutil.rmtree(layers)
        with (folder / MADE).open("rb") as file:
            return Made(str(folder / MADE), hashlib.file_digest(file, "sha256").hexdigest())


@dataclass(frozen=True, slots=True)
class Enroot:
    """Downloads there, with the credentials of enroot's own configuration there."""

    session: Session
    mode: Mode
    environ: Mapping[str, str]

    @property
    def tool(self) -> str:
        done = self.session.run(["enroot", "version"])
        return f"enroot {done.stdout.strip() if done.code == 0 else 'of unknown version'}"

    def make(self, wanted: Wanted, shelf: Shelf, work: str, say: Say) -> Made:
        shelf.need(wanted.manifest.size * (1 + 2 * UNPACKED), str(wanted.image))
        target, url = f"{work}/{MADE}", spelled(wanted.image, "enroot")
        folders = {f"ENROOT_{name}_PATH": f"{work}/{name.lower()}" for name in ("CACHE", "DATA", "TEMP", "RUNTIME")}
        must(sh(self.session, 'mkdir -p -- "$@"', *folders.values()), self.session, f"making {work}")
        settings = [f"{name}={value}" for name, value in folders.items()] + [f"TMPDIR={folders['ENROOT_TEMP_PATH']}"]
        command = ["env", *settings, *self._srun(), "enroot", "import", "-o", target, "--", url]
        say(f"enroot import of {url} on {self.session.name}" + (" by srun" if self.mode == "srun" else ""))
        done = sh(self.session, 'umask 022 && exec "$@"', *command, timeout=IMPORT_SECONDS)
        if done.code != 0:
            raise ShelfFailed(self._problem(url, done.stderr or done.stdout, done.code))
        return Made(target, shelf.sha256(target))

    def _srun(self) -> Sequence[str]:
        if self.mode == "login":
            return ()
        set_here = [f"{flag}={self.environ[name]}" for name, flag in SRUN_SETTINGS.items() if self.environ.get(name)]
        return ("srun", "--ntasks=1", "--job-name=cache-sqsh", *set_here)

    def _problem(self, url: str, said: str, code: int) -> str:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        why = next((line for line in lines if "ERROR" in line or "error:" in line), lines[-1] if lines else "")
        where = f"enroot import of {url} on {self.session.name} failed"
        if code == 127:
            return f"{where}: {why or 'no such command'}; use --method native, which needs no enroot."
        if "No space left" in said or "quota" in said.lower():
            return f"{where} ({why}): make room there, or choose another folder."
        if "401" in said or "403" in said:
            return f"{where} ({why}): put the login into ~/.config/enroot/.credentials there, or use --method native."
        return (
            f"{where} ({why or f'exit code {code}'}): try --method native, or --mode srun where login nodes are small."
        )


def upload(built: Made, shelf: Shelf, target: str, say: Say) -> Made:
    """Piece by piece; after a broken connection it goes on behind what has arrived."""
    progress, failures = Progress("uploaded", Path(built.path).stat().st_size, say), 0
    with Path(built.path).open("rb") as file:
        while True:
            try:
                _send_rest(file.fileno(), shelf, target, progress)
                break
            except TransportError:
                if (failures := failures + 1) == ATTEMPTS:
                    raise
    if shelf.sha256(target) != built.sha256:
        raise ShelfFailed(f"{target} on {shelf.session.name} is not what was sent: run it again.")
    return Made(target, built.sha256)


def _send_rest(descriptor: int, shelf: Shelf, target: str, progress: Progress) -> None:
    at = shelf.size(target) if sh(shelf.session, '[ -e "$1" ]', target).code == 0 else 0
    while data := os.pread(descriptor, CHUNK, at):
        done = sh(shelf.session, WRITE_AT, target, str(at), stdin=data, timeout=PIECE_SECONDS)
        must(done, shelf.session, f"writing {target}")
        at += len(data)
        progress.add(len(data))


def _need_here(folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < size:
        raise ShelfFailed(
            f"{folder.parent} has {free / 1e9:.1f} GB free, and building takes about {size / 1e9:.1f} GB: "
            "set TMPDIR to a folder with more room, or use --method enroot."
        )
