"""Which state of this project's source is running."""

import subprocess
from pathlib import Path

import nemotron
from nemotron.plan import Code


def running_code() -> Code:
    """Commit and cleanliness are null outside a checkout: an installed package may lie in somebody else's."""
    folder = Path(nemotron.__file__).parent
    if _git(folder, "ls-files", "--error-unmatch", "__init__.py") is None:
        return Code(nemotron.__version__)
    status = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return Code(nemotron.__version__, _git(folder, "rev-parse", "HEAD"), None if status is None else bool(status))


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
