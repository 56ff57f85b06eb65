"""OUTPUT_PATH as users write it."""

import os
from pathlib import Path

import pytest

from nemotron.errors import UsageError
from nemotron.images.shelf.place import expanded
from nemotron.transport.here import Here
from tests.launcher.transport.ssh_world import SshWorld


@pytest.fixture
def here(tmp_path):
    return Here({"PATH": os.environ["PATH"], "HOME": "/home/me", "USER": "me", "SCRATCH": "/big disk/'x'"})


@pytest.fixture
def there(tmp_path):
    (tmp_path / "home").mkdir()
    world = SshWorld(tmp_path / "home")
    world.server("login")
    yield world.session()
    world.close()


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/a/b/", "/a/b"),
        ("~", "/home/me"),
        ("~/images", "/home/me/images"),
        ("~root/x", "/root/x"),
        ("/lustre/$USER/images", "/lustre/me/images"),
        ("${SCRATCH}/$USER", "/big disk/'x'/me"),
        ("/a/~/b", "/a/~/b"),
        ("/a/../b", "/b"),
        ('/it\'s; `touch x` $(touch x) && "y" $1', '/it\'s; `touch x` $(touch x) && "y" $1'),
    ],
)
def test_the_home_folder_and_variables_are_filled_in_and_nothing_else(here, text, path):
    assert expanded(here, text) == path


def test_a_relative_folder_is_one_of_this_machine_only(here, there):
    assert expanded(here, "images") == str(Path.cwd() / "images")
    with pytest.raises(UsageError, match="'images' is relative, and me@login would read it otherwise"):
        expanded(there, "images")


def test_names_are_filled_in_by_the_machine_that_has_the_folder(there):
    assert expanded(there, "~/$HOME") == os.path.normpath(os.environ["HOME"] + "/" + os.environ["HOME"])


@pytest.mark.parametrize("text", ["", "/a\nb", "/a\0b"])
def test_what_can_be_no_folder_is_refused(here, text):
    with pytest.raises(UsageError, match="is no folder"):
        expanded(here, text)


def test_unknown_names_are_refused_with_the_machine_that_was_asked(here, there):
    with pytest.raises(UsageError, match=r"\$NOWHERE is not set on me@login"):
        expanded(there, "/x/$NOWHERE")
    with pytest.raises(UsageError, match="knows no user 'no-such-user'"):
        expanded(here, "~no-such-user/x")
