"""Commands pass through the login shell that somebody has on a cluster, and arrive as they were."""

import shutil
import subprocess

import pytest

from nemotron.transport.ssh_line import command_line
from tests.launcher.transport.test_session import WORDS

OTHERS = [shell for shell in ("fish", "zsh") if shutil.which(shell)]


@pytest.fixture(params=["sh", "bash", "tcsh", *OTHERS])
def shell(request):
    if request.param == "tcsh":
        request.getfixturevalue("ssh_config")  # the testbed brings it
    return request.param


def run(shell, *command):
    return subprocess.run([shell, "-c", command_line(command)], capture_output=True, text=True)


def test_arguments_arrive_as_they_are(shell):
    assert run(shell, "printf", "%s|", *WORDS).stdout == "".join(f"{word}|" for word in WORDS)


def test_a_command_that_is_not_there_is_127(shell):
    assert run(shell, "no-such-command", "!").returncode == 127


def test_exit_codes_come_through(shell):
    assert run(shell, "sh", "-c", "exit 3").returncode == 3


def test_what_any_shell_reads_alike_stays_readable():
    assert command_line(["squeue", "--me", "-o", "%i %T"]) == """exec sh -c 'exec squeue --me -o '"'"'%i %T'"'"''"""
