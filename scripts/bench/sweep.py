"""Thirty endpoints as one sweep through SSH, beside thirty times sbatch and no more, and how all of its jobs are.

scripts/testbed up slurm sshd; eval "$(scripts/testbed env)"; python -m scripts.bench.sweep
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nemotron.transport.ssh import Ssh
from nemotron.transport.ssh_config import Destination
from scripts.bench.world import fake_server, report

POINTS = 30
NEMOTRON = [sys.executable, "-m", "nemotron.cli.main"]
RUN = ("steps", "run", "eval/model_eval", "-c", "quickstart", "-b", "cluster", "--sweep", "sweep.toml", "--json")
MODELS = [f"step-{number}" for number in range(POINTS)]
SWEEP = "".join(f'[{model}]\ntarget.api_endpoint.model_id = "{model}"\n' for model in MODELS)
BARE = "#!/bin/sh\n#SBATCH --hold\n#SBATCH --output=/dev/null\ntrue\n"


def profile(folder: Path) -> str:
    """Held, so that nothing runs while others are submitted."""
    keys = {
        "executor": "slurm",
        "host": "testbed-login",
        "account": "eval",
        "container_runtime": "none",
        "python": sys.executable,
        "remote_job_dir": str(folder / "jobs"),
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return "\n".join(["[cluster]", *lines, 'additional_parameters.hold = ""', ""])


def timed(words: tuple[str, ...], folder: Path, environ: dict[str, str]) -> tuple[float, str]:
    began = time.perf_counter()
    done = subprocess.run([*NEMOTRON, *words], cwd=folder, env=environ, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"nemotron {' '.join(words)} failed: {done.stdout}{done.stderr}")
    return time.perf_counter() - began, done.stdout


def bare_sbatch() -> float:
    """As many jobs by sbatch alone, through one connection, too."""
    environ = {"NEMOTRON_SSH_CONFIG": os.environ["NEL_TEST_SSH_CONFIG"], "HOME": os.environ["HOME"]}
    session = Ssh(Destination("testbed-login", None, None, None), environ)
    began = time.perf_counter()
    sbatch = ["sbatch", "--parsable", "--account=eval"]
    ids = [session.run(sbatch, stdin=BARE.encode()).stdout.strip() for _ in range(POINTS)]
    seconds = time.perf_counter() - began
    session.run(["scancel", *ids])
    session.close()
    return seconds


def logins() -> int:
    """How often somebody has come to the login node."""
    log = Path(os.environ["NEL_TEST_SSH_CONFIG"]).parents[2] / "login.log"
    return log.read_text(errors="replace").count("Accepted publickey")


def main() -> bool:
    if not (os.environ.get("NEL_TEST_SLURM") and os.environ.get("NEL_TEST_SSH_CONFIG")):
        sys.exit('No cluster: scripts/testbed up slurm sshd && eval "$(scripts/testbed env)"')
    with tempfile.TemporaryDirectory() as name, fake_server(answer="Answer: 3", models=MODELS) as url:
        folder = Path(name)
        (folder / "env.toml").write_text(profile(folder))
        (folder / "sweep.toml").write_text(SWEEP)
        endpoint = {"EVAL_ENDPOINT_URL": f"{url}/completions", "EVAL_API_KEY_NAME": "null"}
        places = {"EVAL_RESULTS_DIR": str(folder / "results"), "NEMOTRON_HOME": str(folder / "records")}
        environ = os.environ | endpoint | places | {"NEMOTRON_SSH_CONFIG": os.environ["NEL_TEST_SSH_CONFIG"]}
        before = logins()
        seconds, _ = timed(RUN, folder, environ)
        connections = logins() - before
        try:
            looks = [timed(("jobs", "status", "--sweep", "--json"), folder, environ) for _ in range(3)]
        finally:
            timed(("jobs", "cancel", "--sweep"), folder, environ)
    bare, look = bare_sbatch(), min(took for took, _ in looks)
    assert len(json.loads(looks[0][1])["points"]) == POINTS
    return all(
        [
            report(
                f"sweep of {POINTS} endpoints through SSH",
                f"{seconds:.1f} s, {seconds / bare:.1f} x bare sbatch of {bare:.1f} s, {connections} connection(s)",
                "< 30 s over one connection",
                seconds < 30 and connections == 1,
            ),
            report(f"how {POINTS} jobs of a sweep are", f"{look:.2f} s as a process", "< 2 s", look < 2),
        ]
    )


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
