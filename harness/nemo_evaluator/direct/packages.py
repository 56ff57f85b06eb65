"""Which versions the harness consists of, as its own interpreter sees them: the runner's may be another one."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Mapping

LIST_PACKAGES = """
import json
from importlib.metadata import distributions
print(json.dumps({d.metadata["Name"]: d.version for d in distributions() if d.metadata["Name"]}))
"""
SECONDS = 60.0


def installed_packages(executable: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Empty when the interpreter cannot be found or asked."""
    interpreter = find_interpreter(executable)
    if interpreter is None:
        return {}
    try:
        done = subprocess.run(
            [*interpreter, "-c", LIST_PACKAGES],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=True,
        )
        packages = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in sorted(packages.items())}


def find_interpreter(executable: Path) -> list[str] | None:
    """From the first line of the command, also in the form for paths that are too long for one; else its neighbour."""
    with executable.open("rb") as file:
        head = file.read(4096).decode("utf-8", "replace").splitlines()
    first = shlex.split(head[0][2:]) if head and head[0].startswith("#!") else []
    if first and first[0].endswith("/sh") and len(head) > 1 and head[1].startswith("'''exec'"):
        first = shlex.split(head[1][len("'''exec'") :])[:1]
    if first and first[0].endswith("/env"):
        first = [word for word in first[1:] if not word.startswith("-")][:1]
    if first and "python" in Path(first[0]).name:
        return first
    neighbour = executable.parent / "python3"
    return [str(neighbour)] if neighbour.exists() else None
