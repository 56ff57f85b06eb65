"""What a shelf holds, and what of it can go."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nemotron.images.shelf.names import SUFFIX, claim_file, image_of_work, is_image_file, record_file
from nemotron.images.shelf.record import Record
from nemotron.images.shelf.shelf import Found, Shelf
from nemotron.images.sqsh.squashfs import SUPERBLOCK, bytes_used

DAY_SECONDS = 86400.0
CLAIM_SECONDS = 3600.0
"""Claims are renewed every few seconds; one this old has no owner, whatever the clocks say."""


@dataclass(frozen=True, slots=True)
class Item:
    name: str
    size: int
    used: float
    """When it was made, or last asked for; seconds since the epoch, by the clock there."""
    links: tuple[str, ...]
    record: Record | None
    is_claimed: bool
    """Somebody makes it anew just now."""


def items(shelf: Shelf) -> list[Item]:
    """Last used first."""
    return _ordered(shelf, *shelf.entries())


def faults(shelf: Shelf, item: Item) -> str:
    """Why an image cannot be trusted; nothing for one that is what was written."""
    path = shelf.path(item.name)
    used = bytes_used(shelf.session.read(path, 0, SUPERBLOCK))
    if used is None:
        return "is no squashfs"
    if used > item.size:
        return f"is cut off at {item.size} of {used} bytes"
    if item.record is None:
        return "has no record beside it"
    if item.record.size != item.size:
        return f"has {item.size} bytes, and had {item.record.size}"
    if shelf.sha256(path) != item.record.sha256:
        return "holds other bytes than were written"
    return ""


def prune(shelf: Shelf, keep: int | None, older_than_days: float | None) -> list[Item]:
    """Removes images that neither rule spares: not among the `keep` last used, not used for that many days. What is
    claimed stays. Leavings of makers that are gone go with them."""
    found, now = shelf.entries()
    going = [
        item
        for place, item in enumerate(_ordered(shelf, found, now))
        if not item.is_claimed
        and (keep is None or place >= keep)
        and (older_than_days is None or now - item.used > older_than_days * DAY_SECONDS)
    ]
    for item in going:
        for name in (item.name, record_file(item.name), *item.links):
            shelf.session.remove(shelf.path(name))
    for name in _leavings(found, _claims(found, now)):
        shelf.session.remove(shelf.path(name))
    return going


def _ordered(shelf: Shelf, found: Sequence[Found], now: float) -> list[Item]:
    claims, names = _claims(found, now), {entry.name: entry for entry in found}
    items = []
    for entry in found:
        if entry.kind != "f" or not is_image_file(entry.name):
            continue
        links = tuple(sorted(link.name for link in found if link.target == entry.name))
        record = names.get(record_file(entry.name))
        used = max(entry.modified, record.modified if record else 0)
        is_claimed = claim_file(entry.name) in claims
        items.append(Item(entry.name, entry.size, used, links, shelf.record(entry.name), is_claimed))
    return sorted(items, key=lambda item: -item.used)


def _claims(found: Sequence[Found], now: float) -> set[str]:
    return {entry.name for entry in found if entry.name.endswith(".claim") and now - entry.modified < CLAIM_SECONDS}


def _leavings(found: Sequence[Found], claims: set[str]) -> Iterator[str]:
    """Records and links without their image, work without its claim."""
    names = {entry.name for entry in found}
    for entry in found:
        work_for, link_to = image_of_work(entry.name), entry.target
        image = entry.name.removesuffix(".json") + SUFFIX
        is_record = entry.name == record_file(image) and is_image_file(image)
        if (
            (work_for and claim_file(work_for) not in claims)
            or (is_image_file(link_to) and link_to not in names)
            or (is_record and image not in names and claim_file(image) not in claims)
        ):
            yield entry.name
