"""mksquashfs, fed through a pipe; and the first bytes of what it makes."""

import fcntl
import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from nemotron.errors import LauncherError, UsageError
from nemotron.images.sqsh.tree import Looks

MAGIC, SUPERBLOCK = b"hsqs", 96
NEEDS = (4, 5)
"""The first squashfs-tools that read a tar stream."""
MEMORY_MB = 64
"""Of mksquashfs, which takes a quarter of the machine otherwise."""
OPTIONS = ("-comp", "lzo", "-Xalgorithm", "lzo1x_1", "-noD", "-all-root")
"""What enroot gives, but the quickest of lzo: its own choice takes twenty times as long and saves a few percent."""
PIPE_BYTES = 1 << 20


class SquashFailed(LauncherError):
    """mksquashfs could not write the image."""


def find_mksquashfs(environ: Mapping[str, str]) -> str:
    program = shutil.which("mksquashfs", path=environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")
    hint = "install squashfs-tools 4.5 or newer here, or let the cluster import it with --method enroot"
    if program is None:
        raise UsageError(f"mksquashfs is not on PATH: {hint}.")
    version = version_of(program)
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers and (int(numbers[1]), int(numbers[2])) < NEEDS:
        raise UsageError(f"{program} is of version {version}, which reads no tar stream: {hint}.")
    return program


def has_mksquashfs(environ: Mapping[str, str]) -> bool:
    try:
        return bool(find_mksquashfs(environ))
    except UsageError:
        return False


def version_of(program: str) -> str:
    said = subprocess.run([program, "-version"], capture_output=True, text=True).stdout
    version = re.search(r"version (\S+)", said)
    return version[1] if version else "unknown"


@contextmanager
def squashing(program: str, target: Path, root: Looks) -> Iterator[IO[bytes]]:
    """What is written into it as tar becomes `target`; the root folder is no entry of a tar that mksquashfs takes."""
    command = [program, "-", str(target), "-tar", "-quiet", "-no-progress", "-noappend", *OPTIONS]
    command += ["-mem", f"{MEMORY_MB}M", "-root-mode", f"{root.mode:o}", "-root-time", str(root.mtime)]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=said, stderr=said)
        assert process.stdin is not None
        try:
            _widen(process.stdin)
            yield process.stdin
            process.stdin.close()
        except BrokenPipeError:
            pass  # it says why
        except BaseException:
            process.kill()
            raise
        finally:
            _close(process)
        said.seek(0)
        _check(process.returncode, said.read().decode("utf-8", "replace"), target)


def bytes_used(superblock: bytes) -> int | None:
    """Of a file system by its first bytes; None for what is none."""
    if len(superblock) < SUPERBLOCK or not superblock.startswith(MAGIC):
        return None
    used: int = struct.unpack_from("<Q", superblock, 40)[0]
    return used


def _widen(pipe: IO[bytes]) -> None:
    try:
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:  # an administrator's limit: slower, that is all
        return


def _close(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    process.wait()


def _check(code: int, said: str, target: Path) -> None:
    if code == 0:
        return
    lines = [line for line in said.splitlines() if line.strip()]
    why = next((line for line in lines if "FATAL" in line or "No space" in line or "Write failed" in line), "")
    why = why or (lines[-1] if lines else f"exit code {code}")
    if "No space left" in said or "Disk quota" in said:
        raise SquashFailed(f"{target.parent} is full ({why.strip()}): make room, or choose another folder.")
    raise SquashFailed(f"mksquashfs gave up ({why.strip()}): look at the free space and memory of this machine.")
