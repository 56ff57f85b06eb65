"""A fake enroot, for what no registry and no disk can be made to do at will. `install(folder)` puts it on a PATH.

It takes what enroot takes, refuses what enroot refuses, and behaves as FAKE_ENROOT says:
    (nothing)  imports       breaks  writes half a file and fails     full  the same, for want of space
    denied     a 401         slow    imports when the file FAKE_ENROOT_GATE is there
Each import adds a line to the file FAKE_ENROOT_LOG: its image, its settings, what it was started by.
"""

import json
import os
import re
import sys
import time
from pathlib import Path

URL = re.compile(r"docker://([^@/#]+@)?[^#/]+#[a-z0-9./_-]+[:@][A-Za-z0-9._:-]+")
"""The form that every version knows: with `/` for the `#` old ones ask the public default registry."""
SUPERBLOCK = b"hsqs" + bytes(36) + (4096).to_bytes(8, "little")
IMAGE = SUPERBLOCK + bytes(4096 - len(SUPERBLOCK))
GATE_SECONDS = 300
FOLDERS = ("ENROOT_CACHE_PATH", "ENROOT_DATA_PATH", "ENROOT_TEMP_PATH", "ENROOT_RUNTIME_PATH")


def main(arguments: list[str]) -> None:
    if arguments == ["version"]:
        print("3.4.1")
        return
    command, flag, target, end, url = arguments
    assert (command, flag, end) == ("import", "-o", "--")
    if not URL.fullmatch(url):
        fail(f"Invalid image reference: {url}")
    if Path(target).exists():
        fail(f"File already exists: {target}")
    layers = Path(os.environ["ENROOT_CACHE_PATH"]) / "layer"
    layers.write_bytes(b"of an image")
    note(url, target, layers)
    behave(os.environ.get("FAKE_ENROOT", ""), Path(target))


def note(url: str, target: str, layers: Path) -> None:
    said = {"image": url, "target": target, "layer_mode": oct(layers.stat().st_mode & 0o777)}
    said |= {name: os.environ[name] for name in FOLDERS} | {"srun": os.environ.get("FAKE_SRUN")}
    with Path(os.environ.get("FAKE_ENROOT_LOG", os.devnull)).open("a") as file:
        file.write(json.dumps(said) + "\n")


def behave(manner: str, target: Path) -> None:
    if manner == "denied":
        fail("Could not process JSON input: HTTP error 401 Unauthorized")
    if manner == "slow":
        deadline = time.monotonic() + GATE_SECONDS
        while not Path(os.environ["FAKE_ENROOT_GATE"]).exists() and time.monotonic() < deadline:
            time.sleep(0.05)
    if manner in ("breaks", "full"):
        target.write_bytes(IMAGE[:1000])
        fail("write error: No space left on device" if manner == "full" else "Could not download layer")
    target.write_bytes(IMAGE)


def fail(why: str) -> None:
    print(f"[ERROR] {why}", file=sys.stderr)
    sys.exit(1)


def install(folder: Path) -> Path:
    """With an srun beside it that tells the step its options."""
    folder.mkdir(exist_ok=True)
    _program(folder / "enroot", f'exec {sys.executable} {Path(__file__).resolve()} "$@"')
    lines = 'options=\nwhile case $1 in --*) true ;; *) false ;; esac; do options="$options $1"; shift; done\n'
    _program(folder / "srun", lines + 'FAKE_SRUN="$options" exec "$@"')
    return folder


def _program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


if __name__ == "__main__":
    main(sys.argv[1:])
