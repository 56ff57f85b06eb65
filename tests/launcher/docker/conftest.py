import contextlib
import io
import zipfile

import docker
import pytest

from nemotron.executors.docker import DockerExecutor
from nemotron.job import Job
from nemotron.profiles import DockerProfile
from tests.conftest import _testbed

TOKEN = "sk-not-a-real-key-of-a-container"


@pytest.fixture(scope="session")
def engine() -> str:
    return _testbed("NEL_TEST_ENGINE", "podman")


@pytest.fixture(scope="session")
def image() -> str:
    return _testbed("NEL_TEST_IMAGE", "image")


@pytest.fixture
def environ(tmp_path):
    (tmp_path / "home").mkdir()
    return {"HOME": str(tmp_path / "home"), "ENDPOINT_TOKEN": TOKEN, "UNASKED_TOKEN": "sk-not-a-real-key-either"}


@pytest.fixture
def executor(engine, environ):
    return DockerExecutor(DockerProfile(docker_host=engine), environ)


@pytest.fixture
def job(tmp_path):
    """Makes a job whose runner is the code given, in an image of its own choice."""

    def make(code: str, image: str | None, **fields) -> Job:
        return job_of(code, image, str(tmp_path / "results"), **fields)

    return make


def job_of(code: str, image: str | None, results: str, **fields) -> Job:
    fields.setdefault("secrets", ("ENDPOINT_TOKEN",))
    return Job("evaluation", plan(), results, runner(code), image, **fields)


def plan(url: str | None = "http://127.0.0.1:8000/v1/completions", variable: str | None = None) -> dict:
    return {"model": {"id": "m", "endpoint_url": url, "endpoint_url_variable": variable}, "tasks": []}


def runner(code: str) -> bytes:
    """A zip application, as the real runner is one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("__main__.py", code)
    return buffer.getvalue()


@pytest.fixture
def containers(engine):
    """What the engine shows of everything it has."""
    with contextlib.closing(docker.DockerClient(engine, version="auto")) as client:
        yield lambda: [container.attrs for container in client.containers.list(all=True)]
