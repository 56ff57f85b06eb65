"""A user with a cluster of one machine, whose jobs really run, and an endpoint."""

import json

import pytest

from tests.fakes.slurm import FakeSlurm
from tests.launcher.slurm.answers import teach
from tests.nel import server, server_process

__all__ = ["server", "server_process"]

TOKEN = "sk-not-a-real-key-of-the-endpoint"


@pytest.fixture
def slurm(tmp_path):
    with FakeSlurm.at(tmp_path / "slurm") as slurm:
        teach(slurm)
        slurm.says("sbatch", "slurm-wlm 22.05.8\n", when="--version")
        slurm.turn(runs=True)
        yield slurm


@pytest.fixture
def cluster_user(user, slurm, server, tmp_path):
    """`cluster_user.profile` is what their profile says."""
    (tmp_path / "data").mkdir()
    server.control(api_key=TOKEN, model="my-model")
    harness = tmp_path / "harness/bin/python"
    user.profile = {
        "executor": "slurm",
        "partition": "cpu",
        "account": "eval",
        "time": "01:00:00",
        "container_runtime": "none",
        "python": str(harness),
        "remote_job_dir": str(tmp_path / "jobs"),
        "mounts": [f"{tmp_path}/data"],
        "env_vars": {"HF_ENDPOINT": server.root},
    }
    endpoint = {"EVAL_ENDPOINT_URL": f"{server.url}/completions", "ENDPOINT_TOKEN": TOKEN}
    user.environ = slurm.environ(user.environ | endpoint)
    return user


@pytest.fixture
def examined(cluster_user):
    """Runs the doctor, and returns its findings and its exit code."""

    def run(*words: str, profile=None, **environ: str):
        write_profile(cluster_user, "cluster", cluster_user.profile | (profile or {}))
        done = cluster_user("doctor", "-b", "cluster", "-c", "quickstart", "--json", *words, **environ)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)["findings"], done.returncode

    return run


def write_profile(user, name, profile):
    lines = [f"{key} = {json.dumps(value)}" for key, value in profile.items() if not isinstance(value, dict)]
    lines += [
        f"{key}.{k} = {json.dumps(v)}"
        for key, table in profile.items()
        if isinstance(table, dict)
        for k, v in table.items()
    ]
    (user.folder / "env.toml").write_text(f"[{name}]\n" + "\n".join(lines) + "\n")


def bad(findings) -> dict[str, str]:
    """Code (or check) -> severity of what is not well and has a cause of its own."""
    return {f["code"] or f["check"]: f["severity"] for f in findings if f["severity"] in ("warn", "fail")}


def skipped(findings) -> list[str]:
    return [finding["check"] for finding in findings if finding["severity"] == "skip"]


def line_of(findings, code: str) -> str:
    (finding,) = [finding for finding in findings if finding["code"] == code]
    return f"{finding['what']}: {finding['action']}"
