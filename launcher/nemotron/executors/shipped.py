"""This project's own programs that run where it is not installed: on login nodes, on compute nodes, in containers."""

from functools import cache
from importlib.resources import files

from nemotron.runner import zip_application

PACKAGE = "nemotron.executors"
START = "container_start.py"
"""The first thing inside a container, here and there by this name."""


@cache
def source(name: str) -> bytes:
    return files(PACKAGE).joinpath(name).read_bytes()


@cache
def batch_step() -> bytes:
    return zip_application(
        {
            "__main__.py": source("slurm_step.py"),
            "nemotron/__init__.py": b"",
            "nemotron/executors/__init__.py": b"",
            "nemotron/executors/sealed.py": source("sealed.py"),
            "nemotron/slurm/__init__.py": b"",
            "nemotron/slurm/folder.py": files("nemotron.slurm").joinpath("folder.py").read_bytes(),
        }
    )
