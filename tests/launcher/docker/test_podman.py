"""The executor against a real engine: podman of the testbed, behind Docker's API."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import docker
import pytest

from nemotron.errors import SubmitError, UsageError
from nemotron.executors.docker import DockerExecutor
from nemotron.images.reference import parse
from nemotron.images.registry import Registry
from nemotron.job import Phase, Resources
from nemotron.profiles import DockerProfile
from tests.launcher.docker.conftest import TOKEN

DUMP = """
import json, os, sys
out = "{out}"
json.dump({{"env": dict(os.environ), "argv": sys.argv, "uid": os.getuid(), "plan": json.load(open(sys.argv[1]))}},
          open(out + "/seen.json", "w"))
print("first line"); print("last line", end="")
sys.exit({code})
"""
WAITS = """
import signal, sys, time
def stop(*_):
    print("stopped in order", flush=True)
    sys.exit(75)
signal.signal(signal.SIGTERM, stop)
print("started", flush=True)
while True:
    time.sleep(0.1)
"""


def dump(tmp_path: Path, code: int = 0) -> str:
    return DUMP.format(out=tmp_path / "results", code=code)


def seen(tmp_path: Path) -> dict:
    return json.loads((tmp_path / "results/seen.json").read_text())


@pytest.mark.parametrize("code", [0, 1, 2, 75])
def test_an_attached_run_ends_with_the_runners_exit_code(executor, job, image, tmp_path, code, containers):
    assert executor.run(job(dump(tmp_path, code), image)) == code
    assert str(tmp_path) not in json.dumps(containers())


def test_output_appears_as_it_was_written(executor, job, image, tmp_path, capsys):
    executor.run(job(dump(tmp_path), image))
    assert capsys.readouterr().out.replace("\r", "") == "first line\nlast line"


def test_results_land_at_the_same_path_and_belong_to_the_submitter(executor, job, image, tmp_path):
    executor.run(job(dump(tmp_path), image))
    assert (tmp_path / "results/seen.json").stat().st_uid == os.getuid() == seen(tmp_path)["uid"]


def test_the_job_gets_the_secrets_it_names_and_no_others(executor, job, image, tmp_path):
    executor.run(job(dump(tmp_path), image, env={"HF_HUB_OFFLINE": "1"}))
    env = seen(tmp_path)["env"]
    assert env["ENDPOINT_TOKEN"] == TOKEN and env["HF_HUB_OFFLINE"] == "1"
    assert "UNASKED_TOKEN" not in env and env["HOME"] == "/tmp" and env["PYTHONNOUSERSITE"] == "1"


def test_a_secret_is_in_no_argument_no_inspect_and_no_file(executor, job, image, environ, tmp_path, containers):
    submission = executor.submit(job(WAITS, image))
    shown = json.dumps(containers())
    executor.cancel([submission])
    assert submission.job_id in shown and TOKEN not in shown
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if TOKEN.encode() in path.read_bytes()]


def test_a_poisoned_package_of_the_home_folder_is_not_imported(executor, job, image, environ):
    site = Path(environ["HOME"]) / ".local/lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (site / "poison.py").write_text("")
    assert executor.run(job("import poison", image)) == 1


def test_a_detached_job_is_followed_to_its_end(executor, job, image, tmp_path):
    submission = executor.submit(job(dump(tmp_path, 1), image))
    assert list(executor.logs(submission, follow=True)) == ["first line", "last line"]
    state = wait_until_final(executor, submission)
    assert (state.phase, state.exit_code) == (Phase.FAILED, 1)
    executor.cancel([submission])  # leaves what has ended alone
    assert executor.state(submission) == state


def test_a_cancelled_job_stops_in_order_and_its_container_is_gone(executor, job, image, containers):
    submission = executor.submit(job(WAITS, image))
    wait_until(lambda: "started" in list(executor.logs(submission, follow=False)))
    assert executor.state(submission).phase is Phase.RUNNING
    executor.cancel([submission])
    state = executor.state(submission)
    assert (state.phase, state.exit_code) == (Phase.STOPPED, 75)
    assert submission.job_id not in json.dumps(containers())


def test_a_time_limit_stops_in_order(engine, environ, job, image):
    executor = DockerExecutor(DockerProfile(docker_host=engine), environ)
    assert executor.run(job(WAITS, image, resources=Resources(time_limit_seconds=2))) == 75


ATTACHED = """
import os, sys
from nemotron.executors.docker import DockerExecutor
from nemotron.profiles import DockerProfile
from tests.launcher.docker.conftest import job_of
code, image, results, engine = sys.argv[1:]
sys.exit(DockerExecutor(DockerProfile(docker_host=engine), os.environ).run(job_of(code, image, results, secrets=())))
"""


def test_a_signal_to_an_attached_run_reaches_the_runner(engine, image, environ, tmp_path):
    command = [sys.executable, "-c", ATTACHED, WAITS, image, str(tmp_path / "results"), engine]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environ}) as attached:
        assert attached.stdout.readline() == "started\n"
        attached.terminate()
        assert attached.stdout.read() == "stopped in order\n"
    assert attached.returncode == 75


def test_a_container_ends_with_the_command_that_waits_for_it_even_when_that_is_killed(
    engine, executor, job, image, environ, tmp_path
):
    """Its standard input ends with whoever held it, and the next attached run takes it away."""
    command = [sys.executable, "-c", ATTACHED, WAITS, image, str(tmp_path / "results"), engine]
    with contextlib.closing(docker.DockerClient(engine, version="auto")) as client:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environ}) as attached:
            assert attached.stdout.readline() == "started\n"
            attached.kill()
        (left,) = [c for c in client.containers.list(all=True) if str(tmp_path) in json.dumps(c.attrs)]
        try:
            wait_until(lambda: client.containers.get(left.id).status == "exited")
            assert b"stopped in order" in left.logs()
            assert executor.run(job("", image)) == 0
            with pytest.raises(docker.errors.NotFound):
                client.containers.get(left.id)
        finally:
            with contextlib.suppress(docker.errors.NotFound):
                left.remove(force=True)


def test_a_bridge_reaches_an_endpoint_of_this_machine_by_its_name(engine, environ, job, image, tmp_path):
    executor = DockerExecutor(DockerProfile(docker_host=engine, network="bridge"), environ)
    code = f"import json, sys; json.dump(json.load(open(sys.argv[1])), open('{tmp_path}/results/plan.json', 'w'))"
    executor.run(job(code, image))
    url = json.loads((tmp_path / "results/plan.json").read_text())["model"]["endpoint_url"]
    assert url == "http://host.containers.internal:8000/v1/completions"


def test_an_image_is_pulled_by_its_digest(executor, job, image, tmp_path):
    with Registry() as registry:
        pinned = registry.resolve(parse(image)).pinned
    assert executor.run(job(dump(tmp_path), str(pinned))) == 0


def test_an_image_that_is_not_there_is_one_line(executor, job, image):
    with pytest.raises(SubmitError) as refusal:
        executor.run(job("", image.replace(":testbed", ":no-such-tag")))
    assert "\n" not in str(refusal.value)


def test_a_job_without_an_image_is_refused(executor, job):
    with pytest.raises(UsageError, match="EVAL_HARNESS_IMAGE"):
        executor.run(job("", None))


def test_no_engine_says_how_to_name_one(environ, job, tmp_path):
    executor = DockerExecutor(DockerProfile(docker_host=f"unix://{tmp_path}/none.sock"), environ)
    with pytest.raises(SubmitError, match="docker_host in the profile"):
        executor.run(job("", "host.example/image:1"))


def wait_until_final(executor, submission):
    wait_until(lambda: executor.state(submission).phase.is_final)
    return executor.state(submission)


def wait_until(is_so):
    deadline = time.monotonic() + 180
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)
