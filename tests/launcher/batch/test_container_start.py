"""The first process of a container: it becomes the runner, and ends it when nobody holds its input any more."""

import json
import signal
import subprocess
import sys

import pytest

from nemotron.executors.shipped import START, source
from tests.launcher.batch.node import ENDS_WHEN_TOLD

pytestmark = pytest.mark.timeout(600)

SHOWS = "import json, os, sys; print(json.dumps([os.environ['A_TOKEN'], sys.argv, sys.stdin.read()]))"
VALUE = 'sk-not-a-real-key `b` "q" $x\nsecond line'


@pytest.fixture
def container(tmp_path):
    """Starts one around the code of a runner, and leaves none behind."""
    started = []

    def start(code: str, limit: str = "0") -> subprocess.Popen[bytes]:
        (tmp_path / "start.py").write_bytes(source(START))
        (tmp_path / "runner.py").write_text(code)
        command = [sys.executable, "-I", str(tmp_path / "start.py"), limit, str(tmp_path / "runner.py"), "plan.json"]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.stdin.close()
        process.stdout.close()
        process.wait()


def give(process: subprocess.Popen[bytes], *, stops_at_end: bool) -> None:
    line = json.dumps({"environ": {"A_TOKEN": VALUE}, "stops_at_end": stops_at_end})
    process.stdin.write(line.encode() + b"\n")
    process.stdin.flush()


def test_the_runner_gets_its_variables_and_arguments_and_no_input(container):
    process = container(SHOWS)
    give(process, stops_at_end=True)
    value, argv, read = json.loads(process.stdout.readline())
    assert (value, argv[1:], read) == (VALUE, ["plan.json"], "")
    assert process.wait(180) == 0


def test_a_runner_that_ends_is_all_there_is(container):
    """Whoever reads its output sees the end of it, though the input is still open."""
    process = container("print('done')")
    give(process, stops_at_end=True)
    assert process.stdout.read() == b"done\n" and process.wait(180) == 0


def test_the_end_of_the_input_stops_it_in_order(container):
    process = container(ENDS_WHEN_TOLD)
    give(process, stops_at_end=True)
    assert process.stdout.readline() == b"up\n"
    process.stdin.close()
    assert process.wait(180) == 75


def test_a_detached_one_goes_on_without_its_input(container):
    process = container(ENDS_WHEN_TOLD.replace("sleep(600)", "sleep(3); print('alone')"))
    give(process, stops_at_end=False)
    process.stdin.close()
    assert process.stdout.read() == b"up\nalone\n" and process.wait(180) == 0


def test_its_time_is_up_when_it_is_up(container):
    process = container(ENDS_WHEN_TOLD, limit="1")
    give(process, stops_at_end=False)
    assert process.wait(180) in (75, -signal.SIGTERM)  # on a slow machine, before it listens


def test_without_a_whole_line_nothing_runs(container):
    process = container("print('ran')")
    process.stdin.write(b'{"environ": {')
    process.stdin.close()
    assert process.stdout.read() == b"" and process.wait(180) == 75


def test_a_signal_is_the_runners(container):
    process = container(ENDS_WHEN_TOLD)
    give(process, stops_at_end=True)
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(180) == 75
