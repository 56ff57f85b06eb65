"""What sbatch has against a job, in one line, with what to change."""

import re

from nemotron.profiles import SlurmProfile

_PREFIX = re.compile(r"sbatch: (error: )?(Batch job submission failed: )?|^sbatch refuses: ")


def explained(said: str, profile: SlurmProfile) -> str:
    """`said` is all of it, on one line."""
    words = _PREFIX.sub("", said).strip()
    return f"sbatch refuses: {words.rstrip('.')}; {_next_step(words.lower(), profile)}."


def _next_step(words: str, profile: SlurmProfile) -> str:
    account = f"account = {profile.account!r}" if profile.account else "account, which is not set,"
    partition = f"partition = {profile.partition!r}" if profile.partition else "partition, which is not set,"
    if "account" in words and "invalid" in words:
        return f"correct {account} or {partition} in the profile (`sacctmgr show assoc user=$USER` lists yours)"
    if "partition" in words and ("invalid" in words or "unavailable" in words):
        return f"correct {partition} in the profile (`sinfo -s` lists them)"
    if "time limit" in words or "maxwall" in words:
        return "lower time in the profile to what the partition and the QOS allow (`sinfo -o '%P %l'`)"
    if "qos" in words and "invalid" in words:
        return f"correct qos = {profile.qos!r} in the profile (`sacctmgr show assoc user=$USER format=account,qos`)"
    if "memory" in words:
        return "lower mem in the profile to what a node has (`sinfo -o '%P %m'`)"
    if "node configuration" in words or "more processors" in words or "cpu count" in words:
        return "lower cpus_per_task, mem or constraint in the profile to what a node has (`sinfo -o '%P %c %m %f'`)"
    if "feature" in words:
        return f"correct constraint = {profile.constraint!r} in the profile (`sinfo -o '%P %f'`)"
    if "reservation" in words:
        return f"correct reservation = {profile.reservation!r} in the profile (`scontrol show reservation`)"
    if "dependency" in words:
        return f"correct dependency = {profile.dependency!r} in the profile"
    if "unable to contact" in words or "timed out" in words or "connect" in words:
        return "Slurm's controller does not answer: try again later"
    if "unrecognized option" in words or "invalid option" in words:
        return "correct additional_parameters in the profile (`sbatch --help` lists options)"
    return "correct the profile, or ask the cluster's administrators"
