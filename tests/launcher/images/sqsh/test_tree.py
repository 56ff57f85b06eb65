"""Layers over each other by name, as an engine's overlay shows them."""

import pytest

from nemotron.images.sqsh.tree import Folder, ImageDamaged, LayerTree, Tree, folders, merge, names, parts_of
from tests.launcher.images.sqsh.tars import Entry, file, folder, hard_link, symlink, xattrs


def merged(*layers: list[Entry]) -> Tree:
    tree = Tree()
    for number, entries in enumerate(layers):
        grown = LayerTree(number)
        for place, entry in enumerate(entries):
            grown.add(place, entry.info)
        merge(tree, grown)
    return tree


def seen(*layers: list[Entry]) -> dict[str, tuple[int, int]]:
    """Each file's name, with the layer and the place in it that its content is from."""
    found = names(merged(*layers))
    return {path: (key >> 32, key & 0xFFFF) for key, paths in found.items() for path in paths}


def modes(tree: Tree) -> dict[str, int | None]:
    return {path: found.looks.mode if found.looks else None for path, found in folders(tree)}


def test_newer_layers_replace_files_and_keep_what_they_do_not_name():
    assert seen([file("a/x"), file("a/y")], [file("a/x")]) == {"a/x": (1, 0), "a/y": (0, 1)}


def test_the_last_entry_of_a_name_in_a_layer_counts():
    assert seen([file("a"), file("a")]) == {"a": (0, 1)}


def test_a_whiteout_hides_a_file_and_a_folder_of_older_layers():
    assert seen([file("a/x"), file("b/y"), file("c")], [file("a/.wh.x"), file(".wh.b")]) == {"c": (0, 2)}


@pytest.mark.parametrize("order", [1, -1])
def test_a_whiteout_does_not_hide_what_its_own_layer_has(order):
    assert seen([file("a/x"), file("a/old")], [file("a/.wh.x"), file("a/x")][::order])["a/x"][0] == 1
    assert seen([file("a/old")], [file(".wh.a"), file("a/new")][::order]).keys() == {"a/new"}


@pytest.mark.parametrize("order", [1, -1])
def test_an_opaque_folder_hides_all_of_it_below_and_nothing_of_its_own(order):
    upper = [file("a/.wh..wh..opq"), file("a/new"), file("a/b/deep")][::order]
    assert seen([file("a/old"), file("a/b/old"), file("c")], upper).keys() == {"a/new", "a/b/deep", "c"}


def test_other_names_that_are_reserved_are_nobodys_files():
    assert seen([file(".wh..wh.plnk/1.2"), file("a/.wh..wh.aufs"), file("a/x")]).keys() >= {"a/x"}
    assert ".wh..wh.aufs" not in str(seen([file("a/.wh..wh.aufs"), file("a/x")]))


def test_files_and_folders_replace_each_other():
    assert seen([file("a/x")], [file("a")]) == {"a": (1, 0)}
    assert seen([file("a")], [file("a/x")]) == {"a/x": (1, 0)}
    assert seen([file("a"), file("a/x")]) == {"a/x": (0, 1)}


def test_a_folder_looks_as_the_newest_layer_that_has_an_entry_of_it_says():
    layers = [
        [folder("a", 0o700), file("a/x")],
        [file("a/y")],
        [folder("./a/", 0o1777)],
        [file("a/z"), folder(".", 0o555)],
    ]
    assert modes(merged(*layers)) == {"": 0o555, "a": 0o1777}
    assert modes(merged(*layers[:2])) == {"": None, "a": 0o700}


def test_names_of_a_hard_link_share_one_file():
    assert seen([file("a"), hard_link("b", "./a"), hard_link("c/d", "b")]) == {"a": (0, 0), "b": (0, 0), "c/d": (0, 0)}


def test_a_hard_link_keeps_its_content_when_the_name_it_was_made_of_changes():
    assert seen([file("a"), hard_link("b", "a"), file("a")]) == {"a": (0, 2), "b": (0, 0)}
    assert seen([file("a"), hard_link("b", "a")], [file("a")]) == {"a": (1, 0), "b": (0, 0)}


def test_a_hard_link_may_lead_to_a_file_of_an_older_layer_even_one_that_is_deleted():
    assert seen([file("a")], [hard_link("b", "a")]) == {"a": (0, 0), "b": (0, 0)}
    assert seen([file("a")], [hard_link("b", "a"), file(".wh.a")]) == {"b": (0, 0)}


@pytest.mark.parametrize("target", ["nowhere", "folder", "a/nowhere"])
def test_a_hard_link_to_what_is_no_file_names_itself(target):
    with pytest.raises(ImageDamaged, match=rf"/b is a hard link to .*{target}"):
        merged([folder("folder"), file("a")], [folder("folder"), hard_link("b", target)])


def test_symlinks_on_the_way_are_followed_within_their_layer():
    assert seen([folder("usr/lib"), symlink("lib", "usr/lib"), file("lib/x")])["usr/lib/x"] == (0, 2)
    assert seen([folder("usr/lib"), symlink("a/lib", "../usr/lib"), file("a/lib/x")])["usr/lib/x"] == (0, 2)
    assert seen([symlink("lib", "/usr/lib"), file("lib/x"), hard_link("y", "lib/x")])["y"] == (0, 1)


def test_a_folder_of_a_newer_layer_takes_the_place_of_a_symlink():
    assert seen([symlink("lib", "usr/lib"), file("usr/lib/x")], [file("lib/y")]) == {
        "usr/lib/x": (0, 1),
        "lib/y": (1, 0),
    }


def test_a_replaced_symlink_leads_nowhere():
    assert seen([symlink("a", "b"), folder("b"), file("a"), file("a/x")]).keys() == {"a/x"}


@pytest.mark.parametrize("name", ["../../x", "/../x", "a/../../x", "./x", "//x", "/x"])
def test_no_name_leaves_the_tree(name):
    assert seen([file(name)]).keys() == {"x"}


@pytest.mark.parametrize("target", ["../../../etc", "/etc", "/../etc", "a/../../../etc"])
def test_no_symlink_leads_out_of_the_tree(target):
    assert seen([folder("etc"), folder("a"), symlink("out", target), file("out/passwd")]).keys() == {
        "out",
        "etc/passwd",
    }


def test_symlinks_in_circles_are_refused():
    with pytest.raises(ImageDamaged, match="/a: symlinks lead in circles"):
        merged([symlink("a", "b"), symlink("b", "a"), file("a/x")])


def test_a_path_of_thousands_of_folders_is_no_problem():
    deep = "/".join(["d"] * 3000)
    assert seen([file(f"{deep}/x")], [file(f"{deep}/y")]).keys() == {f"{deep}/x", f"{deep}/y"}


def test_a_file_without_a_name_is_refused():
    with pytest.raises(ImageDamaged, match="has no name"):
        merged([file("./")])


def test_attributes_are_kept_but_those_of_an_overlay():
    entry = xattrs(folder("a"), user__note=b"\xff\x00", trusted__overlay__opaque=b"y", user__overlay__impure=b"y")
    tree = merged([entry])
    node = tree.find("a")
    assert isinstance(node, Folder) and node.looks
    assert node.looks.xattrs == (("SCHILY.xattr.user.note", "\udcff\x00"),)


def test_what_the_same_layer_twice_shows_is_what_it_shows_once():
    layer = [file("a/.wh..wh..opq"), file("a/x"), hard_link("b", "a/x")]
    assert seen(layer, layer).keys() == {"a/x", "b"}


def test_parts_of_a_name():
    assert parts_of("./a//b/../c/.") == ("a", "c")
