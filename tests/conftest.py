"""The testbed as fixtures: `scripts/testbed up` starts it, scripts/test says where it is."""

import os
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["tests.nel"]

settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")


def pytest_configure(config: pytest.Config) -> None:
    """Send every look at the Hugging Face hub to the testbed's, with a cache that only this session knows.

    Not in a fixture, because the hub's client reads its environment once, when the first test module imports it.
    """
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under nohup, and children would inherit that,
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as this one is in the background of a script
    if url := os.environ.get("NEL_TEST_HUB"):
        cache = tempfile.TemporaryDirectory(prefix="nel-hf-home-")
        config.add_cleanup(cache.cleanup)
        os.environ |= {"HF_ENDPOINT": url, "HF_HUB_DISABLE_XET": "1", "HF_HOME": cache.name}


@pytest.fixture(scope="session")
def hub() -> str:
    """URL of the offline hub, which this process and its children already use."""
    return _testbed("NEL_TEST_HUB", "hub")


@pytest.fixture(scope="session")
def model_url() -> str:
    """URL of the small real model, with /v1."""
    return _testbed("NEL_TEST_MODEL", "model")


@pytest.fixture(scope="session")
def harness_bin() -> Path:
    """Folder with the commands of the published harness."""
    return Path(_testbed("NEL_TEST_HARNESS", "harness"))


@pytest.fixture(scope="session")
def hosting_bin() -> Path:
    """Folder with the commands of this project beside the wheel that it hosts."""
    return Path(_testbed("NEL_TEST_HOSTING", "hosting"))


@pytest.fixture(scope="session")
def slurm() -> dict[str, str]:
    """Environment in which Slurm's commands talk to the testbed's cluster."""
    return {"SLURM_CONF": _testbed("NEL_TEST_SLURM", "slurm"), "PATH": os.environ["PATH"]}


@pytest.fixture(scope="session")
def ssh_config() -> Path:
    """Knows testbed-login, testbed-jump, and testbed-behind: the login node through the jump host. It is .ssh/config in
    a home folder of its own, with key and known hosts."""
    return Path(_testbed("NEL_TEST_SSH_CONFIG", "sshd"))


def _testbed(variable: str, part: str) -> str:
    if url := os.environ.get(variable):
        return url
    reason = f"{variable} is not set: start it with scripts/testbed up {part}, and the tests with scripts/test"
    if os.environ.get("NEL_TESTBED_REQUIRED") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
