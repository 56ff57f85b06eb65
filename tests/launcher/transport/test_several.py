"""Several files in one answer."""

import os

from nemotron.transport.here import Here
from nemotron.transport.several import read_several


def test_those_that_are_there(tmp_path):
    contents = {"a": "one\n", "b": "", "c 'd'": "ä\n\nno end", "e": "ends\n\n"}
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in contents]
    found = read_several(Here(os.environ), [*paths, str(tmp_path / "none"), str(tmp_path)])
    assert found == {path: text for path, text in zip(paths, contents.values(), strict=True) if text}


def test_of_no_files_nobody_is_asked():
    assert read_several(Here({}), []) == {}
