"""Folders: what the profile mounts, where results go, how much room there is."""

import re
from collections.abc import Iterator

from nemotron.doctor.facts import Facts, Folder
from nemotron.doctor.finding import Finding, fail, ok, warn
from nemotron.job import Mount

SCARCE_BYTES, SCARCE_FILES = 10 << 30, 10_000
TOO_FEW_BYTES = 1 << 30
NEARLY_FULL = 0.95
_ROW = re.compile(
    r"^\s*(?P<place>\S+)\s+(?P<used>\d+)\*?\s+(?P<soft>\d+)\s+(?P<hard>\d+)\s+\S+\s+"
    r"(?P<files>\d+)\*?\s+(?P<soft_files>\d+)\s+(?P<hard_files>\d+)",
    re.MULTILINE,
)
"""Of `quota -wp` and `lfs quota`: KiB used, soft and hard limit, grace, and the same of files; 0 is no limit."""


def mount_findings(mounts: tuple[Mount, ...], facts: Facts) -> Iterator[Finding]:
    for mount in mounts:
        if flaw := facts.sources[mount.source]:
            action = "correct mounts in the profile, or have it shared with the nodes"
            yield fail(f"{mount.source} {flaw} on {facts.host}", action, "mount")
        else:
            yield ok(f"{mount.source} can be read on {facts.host}")


def folder_findings(what: str, path: str, setting: str, facts: Facts) -> Iterator[Finding]:
    """`setting` is the key or variable that names the folder."""
    folder = facts.folders[path]
    if folder.flaw:
        where = path if folder.exists else f"{path} is not there, and {folder.there}"
        action = f"choose another {setting}, or make it one that {facts.user} may write to"
        yield fail(f"{what} {where} cannot be written on {facts.host} ({folder.flaw})", action, "not-writable")
        return
    yield ok(f"{what} {path} can be {'written' if folder.exists else 'made'} on {facts.host}, {_free(folder)} free")
    if folder.free_bytes < TOO_FEW_BYTES:
        yield fail(f"{what} {path} has {_free(folder)} left", f"make room, or choose another {setting}", "space")
    elif folder.free_bytes < SCARCE_BYTES:
        yield warn(f"{what} {path} has only {_free(folder)} left", "logs and caches of a long run need some", "space")
    if folder.free_files is not None and folder.free_files < SCARCE_FILES:
        yield warn(f"{what} {path} has room for {folder.free_files} more files", "remove some", "files")


def quota_findings(tables: str) -> Iterator[Finding]:
    """Only those that bind or will soon; sites differ in how a quota's name relates to a folder's."""
    for row in _ROW.finditer(tables):
        place = row["place"]
        yield from _of_quota(place, "KiB", int(row["used"]), int(row["soft"]), int(row["hard"]))
        yield from _of_quota(place, "files", int(row["files"]), int(row["soft_files"]), int(row["hard_files"]))


def _of_quota(place: str, unit: str, used: int, soft: int, hard: int) -> Iterator[Finding]:
    limit = hard or soft
    if limit and used >= limit:
        yield fail(f"Quota on {place} is used up, {used:,} of {limit:,} {unit}", "remove what is not needed", "quota")
    elif limit and used >= (soft or limit) * NEARLY_FULL:
        yield warn(f"Quota on {place} is nearly used up, {used:,} of {limit:,} {unit}", "make room first", "quota")


def _free(folder: Folder) -> str:
    return f"{folder.free_bytes / (1 << 30):,.1f} GiB"
