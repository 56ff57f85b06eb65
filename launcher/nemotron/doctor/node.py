"""The probe as a job: by the same way, with the same options and the same care for secrets as an evaluation."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from nemotron.doctor.facts import PROGRAM, Facts, NoAnswer, parse_facts
from nemotron.errors import LauncherError
from nemotron.executors import executor_for
from nemotron.executors.base import Executor
from nemotron.job import Job, JobState, Phase, Submission
from nemotron.profiles import SlurmProfile
from nemotron.slurm.folder import LOG
from nemotron.slurm.job_ref import JobRef
from nemotron.transport.reach import session_for

NAME = "nemotron-doctor"
MINUTE = 60
POLL_SECONDS = 1.0
LOG_SECONDS = 30.0
"""A log that was written on a node may be seen late on the login node."""
SMALL = {"cpus_per_task": 1, "mem": 1024, "gpus_per_node": 0, "time": 2 * MINUTE}
ALONE = {"mounts": (), "dependency": None, "mail_type": None, "mail_user": None, "comment": None}


class StillWaiting(LauncherError):
    """The job did not begin in the time that was given to it."""


def small_profile(profile: SlurmProfile) -> SlurmProfile:
    """Where an evaluation would run, but soon: small jobs find a place first."""
    return profile.model_copy(update={**SMALL, **ALONE, "container_runtime": "none"})


def probe_job(questions: Mapping[str, Any], job: Job | None, folder: str) -> Job:
    """Has variables and secrets of `job`; `folder` is where jobs have theirs, and stands for that of results."""
    model = job.plan["model"] if job else {"id": "none", "endpoint_url_variable": None}
    plan: dict[str, Any] = {"probe": dict(questions), "model": model, "tasks": [], "overwrite": True, "resume": False}
    return Job(NAME, plan, folder, PROGRAM, None, dict(job.env) if job else {}, job.secrets if job else ())


def facts_from_node(
    profile: SlurmProfile, job: Job, environ: Mapping[str, str], seconds: float, clock: Callable[[], float]
) -> Facts:
    """Raises StillWaiting, and whatever goes wrong with any job. The job is gone afterwards; its folder stays where it
    may tell what went wrong."""
    executor = executor_for(small_profile(profile), environ)
    submission = executor.submit(job)
    state = JobState(Phase.QUEUED)
    try:
        state = _ended(executor, submission, seconds, clock)
        facts = _facts(executor, submission, state, clock)
        session_for(profile, environ).remove(JobRef.of(submission).folder)
        return facts
    finally:
        if not state.phase.is_final:
            executor.cancel([submission])


def _ended(executor: Executor, submission: Submission, seconds: float, clock: Callable[[], float]) -> JobState:
    deadline = clock() + seconds
    while True:
        (state,) = executor.states([submission])
        if state.phase.is_final:
            return state
        if clock() > deadline:
            raise StillWaiting(
                f"job {submission.job_id} is {state.phase} after {seconds:.0f} s. {state.reason}".strip()
            )
        time.sleep(POLL_SECONDS)


def _reason(submission: Submission, state: JobState) -> str:
    """`nemotron jobs` does not know this one."""
    log = f"{JobRef.of(submission).folder}/{LOG}"
    return state.reason.replace("`nemotron jobs logs`", log) or f"with no answer: see {log}"


def _facts(executor: Executor, submission: Submission, state: JobState, clock: Callable[[], float]) -> Facts:
    deadline = clock() + LOG_SECONDS
    while True:
        try:
            return parse_facts(executor.logs(submission, follow=False))
        except (NoAnswer, OSError):
            if state.phase is not Phase.COMPLETED or clock() > deadline:
                raise NoAnswer(f"job {submission.job_id} has {state.phase}, {_reason(submission, state)}") from None
        time.sleep(POLL_SECONDS)
