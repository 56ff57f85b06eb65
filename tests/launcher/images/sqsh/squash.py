"""What is in a .sqsh, read with unsquashfs."""

import re
import subprocess
from pathlib import Path

LINE = re.compile(r"(\S+) (\d+)/(\d+) +(\d+(?:, *\d+)?) \S+ \S+ root(.*)")


def listing(image: Path) -> dict[str, str]:
    """Path -> `MODE SIZE-OR-DEVICE[ -> TARGET]`; every owner is checked to be root."""
    done = subprocess.run(["unsquashfs", "-lln", "-d", "root", image], capture_output=True, check=True)
    found = {}
    for line in done.stdout.decode("utf-8", "surrogateescape").splitlines():
        if match := LINE.match(line):
            mode, user, group, size, rest = match.groups()
            assert user == group == "0"
            path, _, target = rest.removeprefix("/").partition(" -> ")
            shown = "" if mode.startswith("d") else f" {size.replace(' ', '')}"
            found[path] = f"{mode}{shown}" + (f" -> {target}" if target else "")
    return found


def content(image: Path, path: str) -> bytes:
    return subprocess.run(["unsquashfs", "-cat", image, path], capture_output=True, check=True).stdout
