"""From Enter to the first harness process: `nemotron --help`, `nemotron steps run … -d`, and a run on this machine.

python -m scripts.bench.startup
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scripts.bench.world import fake_server, report

NEMOTRON = [sys.executable, "-m", "nemotron.cli.main"]
RUN = ("steps", "run", "eval/model_eval", "-c", "quickstart")
ROUNDS = 5
HARNESS = """#!/bin/sh
[ "$1" = ls ] || date +%s.%N >>"$STARTED"
exec {python} -m nemo_evaluator.cli.nemo_evaluator_main "$@"
"""
"""Our own harness, which says when it was started."""


def seconds(*arguments: str, environ: dict[str, str] | None = None) -> float:
    began = time.perf_counter()
    command = [*NEMOTRON, *arguments]
    subprocess.run(command, env=os.environ | (environ or {}), check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def best(*arguments: str, environ: dict[str, str] | None = None) -> float:
    return min(seconds(*arguments, environ=environ) for _ in range(ROUNDS))


def help_text() -> bool:
    took = best("--help")
    return report("nemotron --help", f"{took:.3f} s", "< 0.2 s", took < 0.2)


def dry_run(environ: dict[str, str]) -> bool:
    took = best(*RUN, "-d", environ=environ)
    return report("nemotron steps run … -d", f"{took:.3f} s", "< 0.8 s", took < 0.8)


def first_harness_process(folder: Path, environ: dict[str, str]) -> bool:
    """With and without preflight, which asks the endpoint and the harness's own list first."""
    command = folder / "bin/nemo-evaluator"
    command.parent.mkdir()
    command.write_text(HARNESS.format(python=sys.executable))
    command.chmod(0o755)
    (command.parent / "python").symlink_to(sys.executable)
    (folder / "env.toml").write_text(f'[bench]\nexecutor = "local"\npython = "{command.parent}/python"\n')
    environ |= {"NEMOTRON_ENV_FILE": str(folder / "env.toml"), "STARTED": str(folder / "started")}
    looked, unlooked = (
        min(until_started(folder, environ, switch) for _ in range(ROUNDS)) for switch in ("true", "false")
    )
    measured = f"{unlooked:.2f} s, {looked:.2f} s with preflight"
    return report("from Enter to the first harness process", measured, "< 1.0 s", unlooked < 1.0)


def until_started(folder: Path, environ: dict[str, str], preflight: str) -> float:
    (folder / "started").unlink(missing_ok=True)
    began = time.time()
    seconds(*RUN, "-r", "bench", f"preflight={preflight}", "overwrite=true", "-t", "tiny_choice", environ=environ)
    return float((folder / "started").read_text().split()[0]) - began


def main() -> bool:
    with tempfile.TemporaryDirectory() as name, fake_server(answer="Answer: 1") as url:
        environ = {
            "EVAL_ENDPOINT_URL": f"{url}/completions",
            "EVAL_MODEL_HANDLE": "fake-model",
            "EVAL_RESULTS_DIR": f"{name}/results",
            "EVAL_API_KEY_NAME": "null",
            "EVAL_LIMIT_SAMPLES": "2",
            "NEMOTRON_HOME": f"{name}/records",
        }
        return all([help_text(), dry_run(environ), first_harness_process(Path(name), environ)])


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
