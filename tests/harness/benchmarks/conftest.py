import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

RunPython = Callable[..., Any]


@pytest.fixture(scope="session")
def run_python(hub: str) -> RunPython:
    """Run code in a process of its own, because the hub's client reads its environment once; it prints JSON."""

    def run(code: str, *arguments: str, **environ: str) -> Any:
        child = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert child.returncode == 0, child.stderr
        return json.loads(child.stdout)

    return run


@pytest.fixture
def dead_hub() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"
