import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RunPython = Callable[..., Any]


@pytest.fixture(scope="session")
def hub_url() -> str:
    """The hub of the testbed; without one, tests skip, unless the testbed is required."""
    if url := os.environ.get("NEL_TEST_HUB"):
        return url
    if os.environ.get("NEL_TESTBED_REQUIRED") == "1":
        pytest.fail("NEL_TEST_HUB is not set, but NEL_TESTBED_REQUIRED=1. Start the hub and set its URL.")
    pytest.skip("NEL_TEST_HUB is not set: no offline hub is running")


@pytest.fixture(scope="session")
def hub_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests, so that each dataset is downloaded once."""
    return tmp_path_factory.mktemp("hf_home")


@pytest.fixture(scope="session")
def run_python(hub_url: str, hub_home: Path) -> RunPython:
    """Run code in a process of its own, because the hub's client reads its environment once; it prints JSON."""

    def run(code: str, *arguments: str, **environ: str) -> Any:
        hub = {"HF_ENDPOINT": hub_url, "HF_HOME": str(hub_home), "HF_HUB_DISABLE_XET": "1"}
        child = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env={**os.environ, **hub, **environ},
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert child.returncode == 0, child.stderr
        return json.loads(child.stdout)

    return run


@pytest.fixture
def dead_hub() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"
