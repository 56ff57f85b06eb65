"""What is shipped with a job: one file that starts under any Python, and nothing pickled."""

import io
import subprocess
import sys
import zipfile

from nemotron.runner import build_runner


def test_equal_sources_make_equal_bytes():
    assert build_runner() == build_runner()


def test_it_holds_the_job_side_and_nothing_else():
    names = zipfile.ZipFile(io.BytesIO(build_runner())).namelist()
    assert {"__main__.py", "nemo_evaluator/__init__.py", "nemo_evaluator/direct/main.py"} <= set(names)
    assert all(name.endswith(".py") for name in names)
    assert not [name for name in names if name.startswith("nemo_evaluator/") and name.count("/") == 1][1:]


def test_it_starts_where_nothing_is_installed(tmp_path):
    (tmp_path / "runner.pyz").write_bytes(build_runner())
    command = [sys.executable, "-I", "-S", "runner.pyz", "none.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "none.json cannot be read" in done.stderr
