"""The stream as the real mksquashfs reads it."""

import gzip
import os
import subprocess
from pathlib import Path

import pytest
import zstandard

from nemotron.errors import UsageError
from nemotron.images.sqsh.archive import opened
from nemotron.images.sqsh.squashfs import SquashFailed, bytes_used, find_mksquashfs, squashing
from nemotron.images.sqsh.stream import Extra, write_tree
from nemotron.images.sqsh.tree import ImageDamaged, LayerTree, Looks, Tree, merge
from tests.launcher.images.sqsh.squash import content, listing
from tests.launcher.images.sqsh.tars import Entry, device, fifo, file, folder, hard_link, layer, symlink, tar, xattrs

CAPABILITY = bytes.fromhex("0100000200200000000000000000000000000000")


def squashed(folder: Path, *layers: list[Entry] | bytes, extras: tuple[Extra, ...] = ()) -> Path:
    tree, paths = Tree(), []
    for number, entries in enumerate(layers):
        path = folder / f"layer-{number}"
        path.write_bytes(entries if isinstance(entries, bytes) else layer(*entries))
        grown = LayerTree(number)
        with opened(path) as archive:
            for place, entry in enumerate(archive):
                grown.add(place, entry)
        merge(tree, grown)
        paths.append(path)
    target = folder / "image.sqsh"
    with squashing(find_mksquashfs(os.environ), target, tree.root.looks or Looks()) as stream:
        write_tree(tree, paths, extras, stream)
    return target


def test_every_type_comes_with_its_mode_and_belongs_to_root(tmp_path, mksquashfs):
    entries = [
        folder(".", 0o555),
        folder("tmp", 0o1777),
        file("bin/su", "x", 0o4755, uid=1000, gid=1000, uname="me"),
        file("bin/group", "xy", 0o2711),
        file("empty", b"", 0o600),
        symlink("link", "../outside"),
        device("dev/null", 1, 3),
        fifo("pipe", 0o620),
        hard_link("bin/sudo", "bin/su"),
    ]
    assert listing(squashed(tmp_path, entries)) == {
        "": "dr-xr-xr-x",
        "tmp": "drwxrwxrwt",
        "bin": "drwxr-xr-x",
        "bin/su": "-rwsr-xr-x 1",
        "bin/sudo": "-rwsr-xr-x 1",
        "bin/group": "-rwx--s--x 2",
        "empty": "-rw------- 0",
        "link": "lrwxrwxrwx 10 -> ../outside",
        "dev": "drwxr-xr-x",
        "dev/null": "crw-rw-rw- 1,3",
        "pipe": "prw--w---- 0",
    }


def test_names_and_targets_of_any_length_and_bytes_arrive_as_they_are(tmp_path, mksquashfs):
    names = ["n" * 250, "a/" * 100 + "b" * 200, "ünï", "spa ce\\back", "\udcff\udcfe", "-dash", "#"]
    targets = ["/" + "t" * 300, "../" * 90 + "up", "ünï", "../ünï", "..", "a/..//b/"]
    entries = [file(name, name.encode("utf-8", "surrogateescape")) for name in names]
    entries += [symlink(f"link{number}", target) for number, target in enumerate(targets)]
    image = squashed(tmp_path, [*entries, hard_link("long-too", names[1])])
    seen = listing(image)
    assert {name for name in seen if name in names} == set(names)
    assert [seen[f"link{number}"].partition(" -> ")[2] for number in range(len(targets))] == targets
    assert content(image, "long-too") == names[1].encode()


def test_only_what_is_seen_of_the_layers_is_in_it(tmp_path, mksquashfs):
    base = [file("a/x", "old"), file("a/gone"), file("b/y", "kept")]
    image = squashed(tmp_path, base, [file("a/.wh.gone"), file("a/x", "new"), hard_link("c", "b/y")])
    assert listing(image).keys() == {"", "a", "a/x", "b", "b/y", "c"}
    assert (content(image, "a/x"), content(image, "b/y"), content(image, "c")) == (b"new", b"kept", b"kept")


def test_attributes_are_stored_byte_for_byte(tmp_path, mksquashfs):
    values = {"user.note": b"\xff\0=\n"} | ({"security.capability": CAPABILITY} if os.geteuid() == 0 else {})
    fields = {name.replace(".", "__"): value for name, value in values.items()}
    long = xattrs(folder("n" * 200), user__note=b"of a folder")
    image = squashed(tmp_path, [xattrs(file("ping", "x"), **fields), long])
    subprocess.run(["unsquashfs", "-q", "-n", "-d", tmp_path / "out", image], check=True, capture_output=True)
    assert {name: os.getxattr(tmp_path / "out/ping", name) for name in values} == values
    assert os.getxattr(tmp_path / "out" / ("n" * 200), "user.note") == b"of a folder"


@pytest.mark.parametrize("compress", [bytes, zstandard.compress], ids=["plain", "zstd"])
def test_layers_need_not_be_gzip(tmp_path, mksquashfs, compress):
    big = os.urandom(1 << 20)
    image = squashed(tmp_path, layer(file("big", big), file("x", "1"), compress=compress))
    assert content(image, "big") == big and content(image, "x") == b"1"


def test_gzip_of_several_members_is_read_to_its_end(tmp_path, mksquashfs):
    whole = tar([file("a", "1"), file("b", "2")])
    image = squashed(
        tmp_path, layer(compress=lambda _: b"".join(_gzip(whole[at : at + 700]) for at in range(0, len(whole), 700)))
    )
    assert content(image, "b") == b"2"


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data)


def test_files_of_our_own_are_added(tmp_path, mksquashfs):
    image = squashed(tmp_path, [folder("etc", 0o700)], extras=(Extra("etc/rc", b"exec true\n", 0o755),))
    assert listing(image) == {"": "drwxr-xr-x", "etc": "drwx------", "etc/rc": "-rwxr-xr-x 10"}


def test_an_image_without_files_is_one_too(tmp_path, mksquashfs):
    image = squashed(tmp_path, [])
    assert listing(image) == {"": "drwxr-xr-x"}
    assert 96 < (bytes_used(image.read_bytes()) or 0) <= image.stat().st_size


@pytest.mark.parametrize(
    "damage", [lambda body: body[: len(body) // 2], lambda body: body[:20] + b"\0" * 200 + body[220:]]
)
@pytest.mark.parametrize("compress", [None, zstandard.compress], ids=["gzip", "zstd"])
def test_a_damaged_layer_is_named(tmp_path, damage, compress, mksquashfs):
    entries = [file(f"{number}", os.urandom(5000)) for number in range(20)]
    body = layer(*entries) if compress is None else layer(*entries, compress=compress)
    with pytest.raises(ImageDamaged, match="layer-0 is damaged"):
        squashed(tmp_path, damage(body))


def test_mksquashfs_that_cannot_write_says_where_and_why(tmp_path, mksquashfs):
    with (
        pytest.raises(SquashFailed, match="mksquashfs gave up"),
        squashing(mksquashfs, tmp_path / "no/image", Looks()) as stream,
    ):
        stream.write(bytes(1 << 20))


@pytest.mark.parametrize(
    ("version", "told"), [("4.4", "is of version 4.4, which reads no tar stream"), (None, "is not on PATH")]
)
def test_a_machine_without_what_it_takes_says_what_to_do(tmp_path, version, told):
    if version:
        (tmp_path / "mksquashfs").write_text(f"#!/bin/sh\necho mksquashfs version {version} '(2019/08/29)'\n")
        (tmp_path / "mksquashfs").chmod(0o755)
    with pytest.raises(UsageError, match=f"{told}.*--method enroot"):
        find_mksquashfs({"PATH": str(tmp_path)})
