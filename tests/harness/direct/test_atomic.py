"""Run files are whole, or as they were."""

import json
import subprocess
import sys

import pytest

from nemo_evaluator.direct.atomic import read_json, write_json
from nemo_evaluator.direct.errors import StorageFailed
from tests.harness.direct.world import PACKAGE

WRITE = """
import sys
from pathlib import Path
from nemo_evaluator.direct.atomic import write_json
write_json(Path(sys.argv[1]), {"new": "x" * 100_000})
"""


def test_a_disk_that_takes_no_more_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "summary.json"
    write_json(path, {"old": 1})
    limited = ["/bin/sh", "-c", 'ulimit -f 8; exec "$@"', "sh", sys.executable, "-c", WRITE, str(path)]
    done = subprocess.run(limited, env={"PYTHONPATH": str(PACKAGE.parent)}, capture_output=True, text=True)
    assert "StorageFailed" in done.stderr and "resume=true" in done.stderr
    assert read_json(path) == {"old": 1} and list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_gone_is_told_with_the_next_step(tmp_path):
    with pytest.raises(StorageFailed, match=r"cannot be written.*resume=true"):
        write_json(tmp_path / "gone/summary.json", {})


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00"])
def test_what_is_no_object_reads_as_an_empty_one(tmp_path, text):
    (tmp_path / "file.json").write_text(text)
    assert read_json(tmp_path / "file.json") == {}


def test_any_text_can_be_kept(tmp_path):
    write_json(tmp_path / "file.json", {"text": "ü \udcff"})
    assert json.loads((tmp_path / "file.json").read_text())["text"] == "ü \udcff"
