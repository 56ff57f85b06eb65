import shutil

import pytest

from tests.conftest import _testbed


@pytest.fixture
def mksquashfs() -> str:
    """The real one; part of the testbed where it is required."""
    return shutil.which("mksquashfs") or _testbed("PATH_OF_MKSQUASHFS", "podman")
