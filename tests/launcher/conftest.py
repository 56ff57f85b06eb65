import shutil

import pytest

from tests.conftest import _testbed
from tests.launcher.nemotron_process import User


@pytest.fixture
def user(tmp_path):
    return User.at(tmp_path)


@pytest.fixture
def mksquashfs() -> str:
    """The real one; a part of the testbed where that is required."""
    return shutil.which("mksquashfs") or _testbed("PATH_OF_MKSQUASHFS", "podman")
