"""Where a number comes from: the code and the packages that made it."""

import importlib.metadata
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import nemo_evaluator

PACKAGES = ("nemo-evaluator", "aiohttp", "datasets", "numpy", "orjson", "pydantic")


def code() -> dict[str, Any]:
    return {"python": platform.python_version(), "packages": _versions(), "git": _git()}


def _versions() -> dict[str, str | None]:
    return {name: _version(name) for name in PACKAGES}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git() -> dict[str, Any] | None:
    """Commit of the checkout this package runs from; None when it was installed from a wheel."""
    folder = Path(nemo_evaluator.__file__).parent
    if not shutil.which("git") or "site-packages" in folder.parts:
        return None
    head = _run_git(folder, "rev-parse", "HEAD")
    if head is None:
        return None
    return {"sha": head, "dirty": bool(_run_git(folder, "status", "--porcelain", "--untracked-files=no"))}


def _run_git(folder: Path, *arguments: str) -> str | None:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10)
    return done.stdout.strip() if done.returncode == 0 else None
