"""What the login node says about a job before anything is made there, and what speaks against it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from nemotron.errors import SubmitError, UsageError
from nemotron.executors.shipped import source
from nemotron.job import Job
from nemotron.profiles import SlurmProfile
from nemotron.transport.base import Session

STALE_SECONDS = 300.0
"""A claim whose owner was silent for so long may be taken over."""
NOT_FOUND = 127


@dataclass(frozen=True, slots=True)
class Survey:
    home: str
    """Links resolved."""
    job_dir: str
    user: str
    has_sbatch: bool
    uid: int
    gid: int
    now: float
    """By the cluster's clock."""
    real: Mapping[str, str]
    """Paths -> what they are when links are resolved."""
    missing: tuple[str, ...]
    closed: Mapping[str, str]
    """Folders that cannot be made or written to -> what is in the way."""
    filled: tuple[str, ...]
    """Tasks whose folders hold something."""
    claim: Mapping[str, Any]


def survey(session: Session, profile: SlurmProfile, job: Job) -> Survey:
    questions = {
        "output_dir": job.output_dir,
        "job_dir": profile.remote_job_dir,
        "paths": [mount.source for mount in job.mounts],
        "tasks": [task["name"] for task in job.plan["tasks"]],
    }
    done = session.run(["python3", "-I", "-", json.dumps(questions)], stdin=source("survey.py"))
    if done.code == NOT_FOUND:
        raise SubmitError(
            f"There is no python3 on {session.name}: jobs need one, 3.6 or later, there and on the nodes."
        )
    try:
        said = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        raise SubmitError(
            f"python3 on {session.name} gives no sensible answer: {done.said or 'nothing at all'}."
        ) from None
    return Survey(**said | {"missing": tuple(said["missing"]), "filled": tuple(said["filled"])})


def check(found: Survey, job: Job, session: Session) -> None:
    """Raises UsageError, a line a finding; nothing was made."""
    if not found.has_sbatch:
        raise UsageError(_without_sbatch(session))
    if findings := list(_findings(found, job, session.name)):
        raise UsageError("\n".join([*findings, "Nothing was submitted."]))


def _without_sbatch(session: Session) -> str:
    missing = f"There is no sbatch on PATH of {session.name}"
    if session.is_here:
        return f'{missing}: run this on a login node, or add host = "LOGIN_NODE" to the profile.'
    return f"{missing} for commands through SSH: name another host, or set PATH in your .bashrc there."


def _findings(found: Survey, job: Job, place: str) -> Iterator[str]:
    for path in found.missing:
        yield f"mounts: {path} does not exist on {place}: correct it, or leave it out."
    for folder, obstacle in found.closed.items():
        key = "remote_job_dir" if folder == found.job_dir else "EVAL_RESULTS_DIR"
        yield f"{folder} cannot be written on {place}, because of {obstacle}: choose another {key}."
    for path in dict.fromkeys([*(mount.source for mount in job.mounts), job.output_dir]):
        if PurePosixPath(found.home).is_relative_to(found.real[path]):
            yield (
                f"{path} brings your home folder into the container, where its packages and settings would shadow the "
                "image's: name the folder that the job needs."
            )
    yield from _about_results(found, job)


def _about_results(found: Survey, job: Job) -> Iterator[str]:
    plan = job.plan
    heartbeat = found.claim.get("heartbeat_unix")
    silent = found.now - heartbeat if isinstance(heartbeat, int | float) else STALE_SECONDS + 1
    if silent <= STALE_SECONDS:
        owner = found.claim.get("job") or f"process {found.claim.get('pid')} on {found.claim.get('host')}"
        yield (
            f"{job.output_dir} is being written by {owner}, last heard of {max(0, int(silent))} s ago: wait for it, "
            "stop it, or choose a new EVAL_RESULTS_DIR."
        )
    if found.filled and not plan["overwrite"] and not plan["resume"]:
        yield (
            f"{job.output_dir}/{found.filled[0]} already contains results: choose a new EVAL_RESULTS_DIR, continue "
            "them with resume=true, or replace them with overwrite=true."
        )
