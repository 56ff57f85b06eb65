"""The versions of the harness, from the interpreter that its command belongs to."""

import sys

import pytest

from nemo_evaluator.direct.packages import find_interpreter, installed_packages

PYTHON = sys.executable


@pytest.mark.parametrize(
    ("head", "interpreter"),
    [
        (f"#!{PYTHON}\n", [PYTHON]),
        (f"#! {PYTHON} -sP\n", [PYTHON, "-sP"]),
        ("#!/usr/bin/env python3\n", ["python3"]),
        ("#!/usr/bin/env -S python3 -u\n", ["python3"]),
        ("#!/bin/sh\n'''exec' \"/a folder/bin/python3\" \"$0\" \"$@\"\n' '''\n", ["/a folder/bin/python3"]),
        ("#!/bin/bash\nexec something\n", None),
        ("\x7fELF\n", None),
        ("", None),
    ],
)
def test_the_interpreter_is_read_from_the_command(tmp_path, head, interpreter):
    command = tmp_path / "nemo-evaluator"
    command.write_text(head)
    assert find_interpreter(command) == interpreter


def test_a_command_that_is_no_script_has_a_neighbour(tmp_path):
    (tmp_path / "nemo-evaluator").write_bytes(b"\x7fELF\xff")
    (tmp_path / "python3").symlink_to(PYTHON)
    assert find_interpreter(tmp_path / "nemo-evaluator") == [str(tmp_path / "python3")]


def test_names_are_normalised_and_versions_those_of_the_interpreter(tmp_path):
    command = tmp_path / "nemo-evaluator"
    command.write_text(f"#!{PYTHON}\n")
    packages = installed_packages(command, {})
    assert packages["pytest"] == pytest.__version__ and "pytest-asyncio" in packages


@pytest.mark.parametrize("interpreter", ["/nonexistent/python3", "/bin/false"])
def test_an_interpreter_that_cannot_be_asked_names_nothing(tmp_path, interpreter):
    (tmp_path / "nemo-evaluator").write_text(f"#!{interpreter}\n")
    assert installed_packages(tmp_path / "nemo-evaluator", {}) == {}
