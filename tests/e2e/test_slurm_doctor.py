"""The examination of a profile against the real cluster, and what of it every submission looks at."""

import json
import sys
from typing import Any

import pytest

from tests.e2e.slurm_world import CANARY, files_with

pytestmark = pytest.mark.timeout(600)
HERE = {"container_runtime": "none", "python": sys.executable, "cpus_per_task": 1, "mem": "400M"}
DOCTOR = ("doctor", "-b", "slurm_eval_direct", "-c", "quickstart")


def findings(output: str) -> list[dict[str, Any]]:
    found, _ = json.JSONDecoder().raw_decode(output)
    return list(found["findings"])


def bad(found: list[dict[str, Any]]) -> set[str]:
    return {one["code"] or one["check"] for one in found if one["severity"] == "fail"}


@pytest.mark.parametrize("way", ["submitit", "ssh"])
def test_a_profile_that_will_do_is_told_from_a_compute_node(cluster_user, way):
    user = cluster_user(way, **HERE)
    found = findings(user(*DOCTOR, "--json"))
    assert bad(found) == set()
    (endpoint,) = [one["what"] for one in found if one["check"] == "endpoint"]
    assert endpoint.startswith(("n1 reaches", "n2 reaches"))
    assert files_with(CANARY, [user.folder]) == [] and CANARY not in "".join(user.said)
    assert not user.results.exists()


def test_a_small_job_that_cannot_start_names_its_log_which_stays(cluster_user):
    user = cluster_user("ssh", **HERE | {"python": "/none/python"})
    (node,) = [one for one in findings(user(*DOCTOR, "--json", code=1)) if one["check"] == "node"]
    (log,) = user.job_folders.glob("*/job.log")
    assert str(log) in node["what"] + node["action"] and "/none/python" in log.read_text()


def test_faults_of_a_profile_are_found_in_one_go(cluster_user):
    asks = {"partition": "short", "account": "closed", "time": "00:10:00", "gpus_per_node": 1, "mounts": ["/none"]}
    found = findings(cluster_user("ssh", **HERE | asks)(*DOCTOR, "--json", "--no-job", code=1))
    assert bad(found) == {"time-limit", "gpus", "account-unknown", "mount"}


@pytest.mark.parametrize(
    ("asks", "said"),
    [
        ({"partition": "short", "time": "00:10:00"}, "above the limit of partition short, 00:02:00"),
        ({"qos": "brief", "time": "00:20:00"}, "above the limit of QOS brief, 00:10:00"),
        ({"cpus_per_task": 64}, "the largest node of partition cpu has 16"),
        ({"account": "closed"}, "Unknown account 'closed'"),
    ],
)
def test_what_slurm_would_never_start_is_refused_before_anything_is_submitted(cluster_user, asks, said):
    user = cluster_user("ssh", **HERE | asks)
    run = ("steps", "run", "eval/model_eval", "-c", "quickstart", "--batch", "slurm_eval_direct")
    output = user(*run, code=2)
    assert said in output and "Nothing was submitted" in output
    assert not user.job_folders.exists()
