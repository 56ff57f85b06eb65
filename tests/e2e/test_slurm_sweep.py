"""A sweep on the real cluster: one job a point, over one connection, within what the cluster takes at a time."""

import json
import re
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(900)
HERE = {"container_runtime": "none", "python": sys.executable, "cpus_per_task": 1, "mem": "400M"}
SWEEP = ("steps", "run", "eval/model_eval", "-c", "quickstart", "--batch", "slurm_eval_direct", "-m", "-t")
POINTS = ("tiny_arithmetic", "evaluation.nemo_evaluator_config.config.params.parallelism=1,2,3")


def points(output: str) -> dict[str, dict[str, Any]]:
    """What is on standard error comes after the JSON."""
    found, _ = json.JSONDecoder().raw_decode(output)
    return {point["point"]: point for point in found["points"]}


def test_what_the_cluster_does_not_take_now_is_submitted_by_the_same_command_later(cluster_user, cluster):
    """The account may have two jobs at a time."""
    user = cluster_user("ssh", account="limited", **HERE)
    first = points(user(*SWEEP, *POINTS, "--json", code=1, EVAL_LIMIT_SAMPLES="2"))
    assert [point["fate"] for point in first.values()] == ["submitted", "submitted", "left"]
    assert "AssocMaxSubmitJobLimit" in first["3"]["detail"]
    assert "1 not submitted" in user("jobs", "status", "--sweep")
    user("jobs", "wait", "--sweep", "--timeout", "220")
    again = points(user(*SWEEP, *POINTS, "--json", EVAL_LIMIT_SAMPLES="2"))
    assert [point["fate"] for point in again.values()] == ["kept", "kept", "submitted"]
    user("jobs", "wait", "--sweep", "--timeout", "220")
    states = points(user("jobs", "status", "--sweep", "--json"))
    assert {name: state["phase"] for name, state in states.items()} == dict.fromkeys("123", "completed")
    assert {json.loads(p.read_text())["tiny_arithmetic"] for p in user.results.glob("*/summary.json")} == {"ok"}
    ids = [state["backend_id"] for state in states.values()]
    assert len({cluster.job(number)["JobName"] for number in ids}) == 3, "each job has a name of its own"


@pytest.mark.parametrize("way", ["submitit", "ssh"])
def test_all_of_them_are_cancelled_at_once(cluster_user, cluster, way):
    user = cluster_user(way, additional_parameters={"hold": ""}, **HERE)
    output = user(*SWEEP, *POINTS, "preflight=false", "--json")
    ids = [point["job"]["backend_id"] for point in points(output).values()]
    assert "3 queued" in user("jobs", "status", "--sweep")
    assert len(re.findall("was asked to stop", user("jobs", "cancel", "--sweep"))) == 3
    assert {cluster.job(number)["JobState"] for number in ids} == {"CANCELLED"}
