"""The runner on every Python that an image may have: the same story on each, from the zip application."""

import ast
import json
import signal
import subprocess
import sys

import pytest

from tests.harness.direct.world import (
    PACKAGE,
    TOKEN,
    World,
    build_runner,
    finish,
    interpreters,
    validate,
    wait_for,
)

PYTHONS = interpreters()
SOURCES = sorted((PACKAGE / "direct").glob("*.py"))


@pytest.mark.parametrize("version", PYTHONS)
def test_runs_stops_and_resumes(tmp_path, version):
    world = World(tmp_path, PYTHONS[version])
    behaviour = {
        "gsm8k": [{"echo_env": "ENDPOINT_TOKEN"}, {"progress": [3, 5]}],
        "hellaswag": [{"exit": 2}],
        "ifeval": [{"answer": 500}],
    }
    process = world.start("gsm8k", "hellaswag", "ifeval", behaviour=behaviour)
    wait_for(lambda: (world.output / "ifeval/adapter/cache").exists())
    process.send_signal(signal.SIGUSR1)
    done = finish(process)
    assert done.code == 75 and done.err == ""
    assert world.summary() == {"gsm8k": "ok", "hellaswag": "failed(2)"}
    assert "hellaswag: failed(2)" in (world.output / "failures.txt").read_text()
    done = world.run("gsm8k", "hellaswag", "ifeval", behaviour={"ifeval": [{"answer": 5}]}, resume=True)
    assert done.code == 0 and done.err == ""
    assert world.summary() == {"gsm8k": "ok", "hellaswag": "ok", "ifeval": "ok"}
    assert validate("run_manifest", world.read("run_manifest.json"))["harness"]["packages"]
    assert validate("direct_progress", world.read("progress.json"))["state"] == "finished"
    assert TOKEN.encode() not in world.everything_written()


@pytest.mark.parametrize("version", PYTHONS)
def test_refuses_and_finds(tmp_path, version):
    world = World(tmp_path, PYTHONS[version])
    refused = world.run("../escape")
    assert refused.code == 2 and refused.err.startswith("Error: ") and refused.err.count("\n") == 1
    found = world.run("helaswag", preflight=True, model={"endpoint_url": "http://none.invalid/v1/completions"})
    assert found.code == 2
    assert [line for line in found.err.splitlines() if "did you mean 'hellaswag'" in line]
    assert [line for line in found.err.splitlines() if "does not answer" in line]
    assert not world.output.exists()


def test_at_least_our_own_python_is_found():
    assert "{}.{}".format(*sys.version_info) in PYTHONS


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_is_written_in_python_3_8_and_imports_the_standard_library_only(path):
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    foreign = {name for name in names if name.split(".")[0] not in sys.stdlib_module_names}
    assert all(name.startswith("nemo_evaluator.direct") for name in foreign)


def test_the_list_of_what_to_pack_is_complete():
    packed = json.loads((PACKAGE / "direct/pack.json").read_text())
    assert set(packed.values()) == {"__init__.py", *(f"direct/{path.name}" for path in SOURCES)}
    assert packed.pop("__main__.py") == "direct/__main__.py"
    assert all(name == f"nemo_evaluator/{source}" for name, source in packed.items())


def test_runs_as_a_module_too(tmp_path):
    world = World(tmp_path)
    world.runner = tmp_path / "module.py"
    world.runner.write_text("import runpy, sys\nrunpy.run_module('nemo_evaluator.direct', run_name='__main__')\n")
    assert world.run(environ={"PYTHONPATH": str(PACKAGE.parent)}).code == 0
    assert world.summary() == {"gsm8k": "ok"}


def test_the_archive_does_not_depend_on_the_harness_s_package_of_the_same_name(tmp_path):
    """In an image the name nemo_evaluator is taken."""
    world = World(tmp_path)
    (tmp_path / "taken/nemo_evaluator").mkdir(parents=True)
    (tmp_path / "taken/nemo_evaluator/__init__.py").write_text("raise RuntimeError('the wrong one')\n")
    assert world.run(environ={"PYTHONPATH": str(tmp_path / "taken")}).code == 0


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--help"]])
def test_says_how_it_is_called(tmp_path, arguments):
    runner = build_runner(tmp_path / "runner.pyz")
    done = subprocess.run([sys.executable, runner, *arguments], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr == "usage: python runner.pyz plan.json\n"
