"""What Slurm takes away goes on where it was: nothing is asked twice, and there is one journal.

Two jobs at a time, one submitted on the login node and one through SSH, each with a task of its own.
"""

from dataclasses import dataclass

import pytest

from tests.e2e.slurm_world import ClusterUser, Slurm, Submitted, answered, wait_until

pytestmark = pytest.mark.timeout(600)

ONE_AT_A_TIME = "evaluation.nemo_evaluator_config.config.params.parallelism=1"
SAMPLES = 30
WAYS = {"submitit": ("tiny_arithmetic", "n1", "cpu"), "ssh": ("tiny_choice", "n2", "grace")}
"""Task, node and partition: preempted without or with a time of grace."""


@dataclass
class Running:
    user: ClusterUser
    job: Submitted
    task: str
    node: str
    cluster: Slurm

    @property
    def asked(self) -> int:
        return sum(
            count for prompt, count in self.user.asked().items() if ("letter" in prompt) == ("choice" in self.task)
        )

    @property
    def restarts(self) -> int:
        return int(self.cluster.job(self.job.slurm_id)["Restarts"])

    def assert_complete(self) -> None:
        assert self.user.read("summary.json") == {self.task: "ok"}
        journal = answered(self.user.results)
        assert journal.total() == SAMPLES == len(journal)


@pytest.fixture
def two_jobs(cluster_user, cluster):
    """Starts them with a slow endpoint, and returns once both are under way."""

    def start(seconds: float, **profile: object) -> list[Running]:
        jobs = []
        for way, (task, node, partition) in WAYS.items():
            user = cluster_user(way, nodelist=node, partition=partition, **profile)
            user.server.control(behaviours=[{"delay": seconds}])
            job = user.submit("-t", task, ONE_AT_A_TIME, EVAL_LIMIT_SAMPLES=str(SAMPLES))
            jobs.append(Running(user, job, task, node, cluster))
        for running in jobs:
            wait_until(lambda running=running: running.asked >= 3, f"questions of {running.task}")
        return jobs

    return start


def finish(jobs: list[Running]) -> None:
    """Without delay from now on, and with every question asked once."""
    jobs[0].user.server.control(behaviours=[])
    for running in jobs:
        running.user.wait(running.job)
        running.assert_complete()
    asked = jobs[0].user.asked()
    assert len(asked) == len(jobs) * SAMPLES == asked.total(), asked


def test_preempted_jobs_go_on_and_ask_nothing_twice(two_jobs, cluster):
    jobs = two_jobs(2.0, cpus_per_task=16)
    for running in jobs:
        cluster.urgent(running.node)
    for running in jobs:
        wait_until(lambda running=running: running.restarts == 1, f"{running.job.slurm_id} started again")
    finish(jobs)
    assert all("started again once" in running.user("jobs", "status", running.job.id) for running in jobs)


def test_jobs_that_reach_their_time_limit_go_on_and_ask_nothing_twice(two_jobs):
    """The least limit that Slurm has is a minute, and it may look half a minute early."""
    jobs = two_jobs(2.0, time="00:01:00", max_requeues=9)
    for running in jobs:
        wait_until(lambda running=running: running.restarts >= 1, f"{running.job.slurm_id} started again")
    finish(jobs)


def test_requeues_are_bounded(cluster_user, cluster):
    user = cluster_user("ssh", nodelist="n2", cpus_per_task=16, max_requeues=0)
    user.server.control(behaviours=[{"delay": 1.0}])
    job = user.submit("-t", "tiny_choice", ONE_AT_A_TIME)
    wait_until(lambda: user.asked().total() >= 3, "questions")
    cluster.urgent("n2")
    user.wait(job, code=75)
    shown = user.status(job)
    assert shown["phase"] == "stopped" and "max_requeues" in shown["reason"]


def test_cancelled_jobs_stay_cancelled_say_by_whom_and_go_on_when_they_are_told_to(two_jobs, cluster):
    jobs = two_jobs(2.0)
    by_slurm, by_nemotron = jobs
    cluster("scancel", by_slurm.job.slurm_id)
    by_nemotron.user("jobs", "cancel", by_nemotron.job.id)
    for running in jobs:
        running.user.wait(running.job, code=75)
        shown = running.user.status(running.job)
        assert shown["phase"] == "stopped" and "cancelled by root" in shown["reason"].lower(), shown
        wait_until(lambda slurm_id=running.job.slurm_id: cluster.is_over(slurm_id), "the end for Slurm, too")
        assert cluster.job(running.job.slurm_id)["JobState"] == "CANCELLED" and running.restarts == 0
        assert answered(running.user.results).total() >= 2
    for running in jobs:
        running.job = running.user.submit("-t", running.task, "resume=true", EVAL_LIMIT_SAMPLES=str(SAMPLES))
    finish(jobs)
