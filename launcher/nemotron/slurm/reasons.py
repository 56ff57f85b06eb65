"""Slurm's states and reasons as phases and words: what happened, and what to do about it."""

from dataclasses import replace

from nemotron.job import JobState, Phase
from nemotron.slurm.rows import Accounted

GOES_ON = "resume=true goes on from what it finished"

MAY_COME_BACK = frozenset({"PREEMPTED", "REQUEUED", "NODE_FAIL", "BOOT_FAIL", "REVOKED"})
"""How a life ends after which Slurm may start the job again."""

HELD = "held: `scontrol release {job_id}` lets it run, `nemotron jobs cancel` gives it up"
WAITING_FOR = {
    "Priority": "waits behind jobs of higher priority",
    "Resources": "waits for free nodes",
    "Dependency": "waits for the job it depends on",
    "DependencyNeverSatisfied": "will never start: the job it depends on did not end as asked",
    "BeginTime": "starts later, as Slurm asked or after a restart",
    "Licenses": "waits for a licence",
    "Reservation": "waits for its reservation",
    "ReqNodeNotAvail": "the nodes that it asks for are down, drained or reserved",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition takes no jobs to run now",
    "PartitionNodeLimit": "asks for more than a node of the partition has, or the partition's nodes are down",
    "PartitionTimeLimit": "will not start: time in the profile is above the partition's limit",
    "BadConstraints": "will not start: no node has what constraint, mem or cpus_per_task ask for",
    "InvalidAccount": "will not start: the account is not valid, see account in the profile",
    "InvalidQOS": "will not start: the QOS is not valid, see qos in the profile",
    "JobHeldUser": HELD,
    "JobHeldAdmin": "held by an administrator: ask them",
    "JobLaunchFailure": "its node could not start it",
    "launch_failed_requeued_held": f"its node could not start it; {HELD}",
    "job_requeued_in_held_state": HELD,
    "NodeDown": "its node went down",
}
LIMITED = {
    "QOS": "a limit of the QOS",
    "Assoc": "a limit of your account",
}
LIMITS = {
    "MaxJobsPerUser": "jobs of one user at a time",
    "MaxJobsPerAccount": "jobs of one account at a time",
    "MaxJobs": "jobs at a time",
    "GrpJobs": "jobs of all users at a time",
    "GrpSubmitJobs": "queued jobs of all users",
    "MaxSubmitJob": "queued jobs",
    "MaxCpu": "CPUs",
    "GrpCpu": "CPUs of all users",
    "MaxMem": "memory",
    "GrpMem": "memory of all users",
    "MaxNode": "nodes",
    "GrpNode": "nodes of all users",
    "MaxWall": "time: lower time in the profile",
    "GrpWall": "time of all users",
    "MaxGRES": "GPUs",
    "GrpGRES": "GPUs of all users",
    "MaxTRES": "resources",
    "GrpTRES": "resources of all users",
    "GrpBilling": "its budget of all users",
    "MaxBilling": "its budget",
}
ENDED = {
    "OUT_OF_MEMORY": (Phase.FAILED, "out of memory: raise mem in the profile"),
    "TIMEOUT": (Phase.STOPPED, f"its time limit was up: raise time in the profile, or {GOES_ON}"),
    "DEADLINE": (Phase.STOPPED, f"its deadline had passed; {GOES_ON}"),
    "NODE_FAIL": (Phase.STOPPED, f"its node failed; {GOES_ON}"),
    "BOOT_FAIL": (Phase.STOPPED, f"its node did not boot; {GOES_ON}"),
    "PREEMPTED": (Phase.STOPPED, f"preempted by a job of higher priority; {GOES_ON}"),
    "REQUEUED": (Phase.STOPPED, f"it was put back in the queue and is there no more; {GOES_ON}"),
    "REVOKED": (Phase.STOPPED, "another cluster of the federation took it"),
}
EXIT_CODES = {
    1: "a task failed: summary.json and failures.txt of the results say which",
    2: "the runner refused: see `nemotron jobs logs`",
    75: f"stopped before its end; {GOES_ON}",
    126: "the runner could not be started: see `nemotron jobs logs`",
    127: "a command of the job was not found: see `nemotron jobs logs`",
}
NO_FILES = 53
"""The `signal` that Slurm gives a batch step whose files it could not open."""


def waiting(state: str, reason: str, job_id: str) -> str:
    """Why a job does not run yet."""
    word, _, rest = reason.partition(",")
    word = word.strip("() ")
    if said := WAITING_FOR.get(word) or WAITING_FOR.get(word.replace(" ", "_")) or _limit(word):
        detail = f" ({rest.strip()})" if rest.strip() else ""
        return said.format(job_id=job_id) + detail
    if state in ("REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"):
        return HELD.format(job_id=job_id)
    return reason


def _limit(word: str) -> str:
    """`QOSMaxJobsPerUserLimit`, `AssocGrpCPUMinutesLimit`: too many to list, all made of the same parts."""
    for prefix, whose in LIMITED.items():
        if word.startswith(prefix):
            rest = word.removeprefix(prefix).lower()
            what = next((said for part, said in LIMITS.items() if rest.startswith(part.lower())), "")
            return f"waits for {whose}" + (f" on {what}" if what else "") + f" ({word})"
    return ""


def ended(life: Accounted, has_run: bool = True) -> JobState:
    """Of a life that is a job's last; `has_run` in this or in an earlier one."""
    if "OUT_OF_MEMORY" in life.steps:
        return JobState(*_of("OUT_OF_MEMORY"))
    if life.state == "CANCELLED":
        who = f" by {life.by}" if life.by else ""
        return JobState(Phase.STOPPED, None, f"cancelled{who}" + (f"; {GOES_ON}" if has_run else " before it started"))
    if life.state in ENDED:
        return JobState(*_of(life.state))
    if life.state != "COMPLETED" and not life.exit_code and not life.signal:
        return JobState(Phase.FAILED, None, f"Slurm calls it {life.state}, and no more")
    return exited(life.exit_code, life.signal)


def exited(exit_code: int, signal: int = 0) -> JobState:
    if signal == NO_FILES:
        return JobState(
            Phase.FAILED, None, "its node could not open the job's folder or log: is remote_job_dir shared?"
        )
    if signal:
        return replace(JobState.of_exit(128 + signal), reason=f"killed by signal {signal}; {GOES_ON}")
    return replace(JobState.of_exit(exit_code), reason=EXIT_CODES.get(exit_code, ""))


def _of(state: str) -> tuple[Phase, None, str]:
    phase, reason = ENDED[state]
    return phase, None, reason
