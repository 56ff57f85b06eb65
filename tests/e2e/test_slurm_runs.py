"""A whole evaluation as a Slurm job: submitted on the login node or through a jump host, run in a container that its
digest names, looked after, and its results fetched."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.harness.direct.world import validate

pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("way", ["submitit", "ssh"])
def test_a_harness_image_runs_by_digest_and_the_results_come_home(cluster_user, cluster, way):
    user = cluster_user(way)
    job = user.submit(EVAL_LIMIT_SAMPLES="4")
    followed = user("jobs", "logs", "-f", job.id)
    user.wait(job)
    assert "tiny_choice" in followed
    assert user.read("summary.json") == {"tiny_arithmetic": "ok", "tiny_choice": "ok"}
    harness = validate("run_manifest", user.read("run_manifest.json"))["harness"]
    assert harness["image_pinned_by_digest"] and re.search(r"@sha256:[0-9a-f]{64}$", harness["image"])
    assert harness["requested_image"] == user.environ["EVAL_HARNESS_IMAGE"]
    assert user.asked().total() == 8 and set(user.asked().values()) == {1}
    shown = user.status(job)
    assert (shown["phase"], shown["exit_code"], shown["backend_id"]) == ("completed", 0, job.slurm_id)
    assert [row["phase"] for row in json.loads(user("jobs", "list", "--json"))] == ["completed"]
    assert cluster.job(job.slurm_id)["Account"] == "eval"
    fetched = user.folder / "fetched"
    user("jobs", "fetch", job.id, "--to", str(fetched))
    assert contents(fetched, user.results) == contents(user.results, user.results)


def contents(folder: Path, like: Path) -> dict[str, bytes]:
    """Of the files that `like` has, too: a fetch may bring more, such as the job's log."""
    names = [str(path.relative_to(like)) for path in like.rglob("*") if path.is_file()]
    return {name: (folder / name).read_bytes() for name in names}


@pytest.mark.parametrize("way", ["submitit", "ssh"])
def test_without_a_container_the_job_uses_the_harness_of_its_node(cluster_user, way):
    user = cluster_user(way, container_runtime="none", python=sys.executable)
    job = user.submit("-t", "tiny_arithmetic", EVAL_LIMIT_SAMPLES="4")
    user.wait(job)
    assert user.read("summary.json") == {"tiny_arithmetic": "ok"}
    assert user.asked().total() == 4


def test_a_job_whose_task_fails_says_so_in_its_exit_code(cluster_user):
    user = cluster_user("submitit")
    job = user.submit("-t", "tiny_arithmetic", "-t", "no_such_task", "preflight=false", EVAL_LIMIT_SAMPLES="2")
    user.wait(job, code=1)
    assert user.read("summary.json")["tiny_arithmetic"] == "ok"
    assert (user.status(job)["phase"], user.status(job)["exit_code"]) == ("failed", 1)
