"""What a shelf holds: shown, compared with what was written, and made smaller."""

import json
import os
import time
from pathlib import Path

import pytest

from nemotron.errors import UsageError
from nemotron.images.shelf import stock
from nemotron.images.shelf.claim import claimed
from nemotron.images.shelf.names import claim_file, index_link
from nemotron.images.shelf.record import Record
from nemotron.images.shelf.shelf import Shelf
from nemotron.transport.here import Here
from tests.fakes.enroot import IMAGE

DAY = 86400
NAMES = [f"sha256-{letter * 64}.sqsh" for letter in "abcd"]


@pytest.fixture
def shelf(tmp_path):
    """Four images, each used a day longer ago than the one before."""
    shelf = Shelf(Here({"PATH": os.environ["PATH"]}), str(tmp_path / "images"))
    shelf.make()
    for age, name in enumerate(NAMES):
        put(shelf, name, age)
    return shelf


def put(shelf: Shelf, name: str, age: int) -> None:
    made = Path(shelf.path(".made"))
    made.write_bytes(IMAGE)
    digest = name.removesuffix(".sqsh").replace("-", ":")
    record = Record(
        reference=f"host/name:{age}",
        index_digest=f"sha256:{age:064}",
        platform="linux/amd64",
        platform_digest=digest,
        layers=(),
        size=len(IMAGE),
        sha256=shelf.sha256(str(made)),
        tool="test",
        created="2026-01-01T00:00:00+00:00",
    )
    with shelf.claimed(name, print) as (claim, _):
        shelf.publish(str(made), record, [f"readable-{age}.sqsh"], claim)
    for path in (shelf.path(name), shelf.path(name).replace(".sqsh", ".json")):
        os.utime(path, (time.time() - age * DAY - 60,) * 2)


def names(shelf: Shelf) -> set[str]:
    return {path.name for path in Path(shelf.folder).iterdir()}


def test_images_are_shown_last_used_first_with_their_names(shelf):
    first, *_, last = stock.items(shelf)
    assert (first.name, last.name) == (NAMES[0], NAMES[-1])
    assert first.record and first.record.reference == "host/name:0"
    assert first.links == ("readable-0.sqsh", index_link(f"sha256:{0:064}", "linux/amd64"))


def test_asking_for_an_image_is_using_it(shelf):
    assert shelf.find("sha256:" + "d" * 64, "linux/amd64") == NAMES[-1]
    assert stock.items(shelf)[0].name == NAMES[-1]


def test_strangers_in_the_folder_are_left_alone(shelf):
    strangers = {"mine.sqsh", "notes.json", "a\tb", "a\nb", "sub", ".hidden"}
    for name in strangers - {"sub"}:
        Path(shelf.path(name)).write_text("x")
    Path(shelf.path("sub")).mkdir()
    assert len(stock.items(shelf)) == 4
    stock.prune(shelf, 0, None)
    assert names(shelf) == strangers


@pytest.mark.parametrize(
    ("keep", "days", "gone"),
    [(1, None, NAMES[1:]), (0, None, NAMES), (9, None, []), (None, 2, NAMES[2:]), (3, 1, NAMES[3:]), (1, 2, NAMES[2:])],
)
def test_prune_takes_what_no_rule_spares(shelf, keep, days, gone):
    assert [item.name for item in stock.prune(shelf, keep, days)] == list(gone)
    left = [name for name in NAMES if name not in gone]
    assert len(names(shelf)) == 4 * len(left) and set(left) <= names(shelf)


def test_prune_takes_nothing_that_is_being_made(shelf):
    with claimed(shelf.session, shelf.path(claim_file(NAMES[2])), print):
        assert NAMES[2] not in [item.name for item in stock.prune(shelf, 0, None)]
    assert NAMES[2] in names(shelf)


def test_prune_takes_the_leavings_of_makers_that_are_gone(shelf):
    folder = Path(shelf.folder)
    (folder / f".{NAMES[0]}.0123.work").mkdir()
    (folder / f".{NAMES[0]}.0123.work/half").write_text("x")
    (folder / claim_file(NAMES[1])).write_text("{}")
    os.utime(folder / claim_file(NAMES[1]), (time.time() - 2 * DAY,) * 2)
    (folder / ("sha256-" + "e" * 64 + ".json")).write_text("{}")
    (folder / "moved.sqsh").symlink_to("sha256-" + "e" * 64 + ".sqsh")
    stock.prune(shelf, 9, None)
    assert len(names(shelf)) == 16


def test_an_image_that_is_as_it_was_written_has_no_fault(shelf):
    assert [stock.faults(shelf, item) for item in stock.items(shelf)] == [""] * 4


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "is no squashfs"),
        (b"gone wrong" * 500, "is no squashfs"),
        (IMAGE[:1000], "is cut off at 1000 of 4096 bytes"),
        (IMAGE + b"x", "has 4097 bytes, and had 4096"),
        (IMAGE[:-1] + b"x", "holds other bytes than were written"),
    ],
)
def test_one_that_is_not_is_told_why(shelf, content, fault):
    Path(shelf.path(NAMES[1])).write_bytes(content)
    (item,) = [item for item in stock.items(shelf) if item.name == NAMES[1]]
    assert stock.faults(shelf, item) == fault


@pytest.mark.parametrize("record", [None, "half of it", json.dumps({"size": 1})])
def test_one_without_its_record_cannot_be_trusted(shelf, record):
    path = Path(shelf.path(NAMES[1])).with_suffix(".json")
    path.unlink() if record is None else path.write_text(record)
    (item,) = [item for item in stock.items(shelf) if item.name == NAMES[1]]
    assert item.record is None and stock.faults(shelf, item) == "has no record beside it"


def test_a_folder_that_is_not_there_is_named(shelf):
    with pytest.raises(UsageError, match="/nowhere is no folder on this machine"):
        stock.items(Shelf(shelf.session, "/nowhere"))
