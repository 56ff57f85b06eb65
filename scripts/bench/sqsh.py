"""A .sqsh of the harness image: the native way against skopeo copy, umoci unpack and mksquashfs as enroot calls it.

scripts/testbed up registry podman image; eval "$(scripts/testbed env)"; python -m scripts.bench.sqsh
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from scripts.bench.world import ROOT, report

ENROOT = ("-comp", "lzo", "-noD", "-all-root", "-no-progress", "-quiet")


def native(image: str, folder: Path) -> tuple[float, int]:
    """Seconds, and the peaks of all its processes together in MB."""
    command = [sys.executable, "-m", "nemotron.cli.sqsh", image, "local", str(folder / "images")]
    began = time.perf_counter()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        peaks: dict[int, int] = {}
        watching = threading.Thread(target=watch, args=(process, peaks))
        watching.start()
        process.wait()
        seconds = time.perf_counter() - began
        watching.join()
    if process.returncode:
        sys.exit(f"nel cache-sqsh of {image} failed: try it by hand.")
    return seconds, sum(peaks.values()) // 1024


def watch(process: subprocess.Popen[bytes], peaks: dict[int, int]) -> None:
    """Keeps the high-water mark, in kB, of the process and its children: as if all had their peak at once."""
    while process.poll() is None:
        for pid in (process.pid, *children(process.pid)):
            peaks[pid] = max(peaks.get(pid, 0), high_water(pid))
        time.sleep(0.1)


def children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


def high_water(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def usual(image: str, folder: Path) -> float:
    began = time.perf_counter()
    run("skopeo", "copy", "-q", "--src-tls-verify=false", f"docker://{image}", f"oci:{folder}/oci:image")
    unprivileged = [] if os.geteuid() == 0 else ["--rootless"]
    run("umoci", "unpack", *unprivileged, "--image", f"{folder}/oci:image", f"{folder}/bundle")
    run("mksquashfs", f"{folder}/bundle/rootfs", f"{folder}/usual.sqsh", *ENROOT)
    return time.perf_counter() - began


def run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main() -> bool:
    if not (image := os.environ.get("NEL_TEST_IMAGE")):
        sys.exit('No image: scripts/testbed up registry podman image && eval "$(scripts/testbed env)"')
    with tempfile.TemporaryDirectory(prefix="bench-sqsh-", dir=os.environ.get("BENCH_DIR")) as folder:
        ours, peak = native(image, Path(folder))
        theirs = usual(image, Path(folder))
    measured = f"{ours:.1f} s, {ours / theirs:.2f} of {theirs:.1f} s; peak {peak} MB"
    return report(
        "nel cache-sqsh of the harness image", measured, "<= 0.5 of it, < 300 MB", ours <= theirs / 2 and peak < 300
    )


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
