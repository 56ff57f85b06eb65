"""Where the folders are that travel with the package."""

from importlib.resources import files
from pathlib import Path


def folder(name: str) -> Path:
    """`suites`, `profiles` or `containers`: in the package when installed, at the top of the project in a checkout."""
    package = Path(str(files("nemotron")))
    installed = package / "data" / name
    return installed if installed.is_dir() else package.parents[1] / name
