"""Whole processes: `nel --help`, and `nel eval run --bench gsm8k` with a warm dataset cache.

eval "$(scripts/testbed env)"; python -m scripts.bench.process
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scripts.bench.world import fake_server, report

NEL = [sys.executable, "-m", "nemo_evaluator.cli.main"]


def seconds(*arguments: str, environ: dict[str, str] | None = None) -> float:
    began = time.perf_counter()
    subprocess.run([*NEL, *arguments], env=os.environ | (environ or {}), check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def help_text() -> bool:
    best = min(seconds("--help") for _ in range(5))
    return report("nel --help", f"{best:.3f} s", "< 0.2 s", best < 0.2)


def gsm8k(hub: str) -> bool:
    with tempfile.TemporaryDirectory() as home, fake_server(answer="Six times seven is 42.\nThe answer is 42") as url:
        environ = {"HF_ENDPOINT": hub, "HF_HUB_DISABLE_XET": "1", "HF_HOME": home}

        def run(n: int) -> float:
            flags = ("--bench", "gsm8k", "--model-url", url, "--model-id", "m", "-o", str(Path(home) / f"out{n}"))
            return seconds("eval", "run", *flags, "-O", "benchmarks[0].max_concurrent=64", environ=environ)

        cold, *warm = [run(n) for n in range(4)]
    measured = f"{min(warm):.2f} s ({cold:.2f} s with a cold cache)"
    return report("nel eval run --bench gsm8k, 1,319 problems", measured, "< 3 s", min(warm) < 3)


def main() -> bool:
    hub = os.environ.get("NEL_TEST_HUB")
    if not hub:
        sys.exit('No hub to read gsm8k from: scripts/testbed up hub && eval "$(scripts/testbed env)"')
    return all([help_text(), gsm8k(hub)])


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
