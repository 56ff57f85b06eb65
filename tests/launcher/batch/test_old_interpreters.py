"""What runs on login nodes, compute nodes and in images has to do so with the Python they have."""

import ast
import sys

import pytest

from nemotron.executors.shipped import source

SHIPPED = ("container_start.py", "sealed.py", "slurm_step.py", "survey.py")
OWN = {"nemotron.executors.sealed", "nemotron.slurm.folder"}
SINCE_3_7 = {"dataclasses", "contextvars", "zoneinfo", "tomllib", "graphlib", "asyncio.runners", "importlib.resources"}


@pytest.mark.parametrize("name", SHIPPED)
def test_it_is_written_in_python_3_6(name):
    ast.parse(source(name), feature_version=(3, 6))


@pytest.mark.parametrize("name", SHIPPED)
def test_it_imports_the_standard_library_only(name):
    imports = [node for node in ast.walk(ast.parse(source(name))) if isinstance(node, ast.Import | ast.ImportFrom)]
    named = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in imports}
    assert not {part for part in named - OWN if part.split(".")[0] not in sys.stdlib_module_names or part in SINCE_3_7}
    assert "__future__" not in named
