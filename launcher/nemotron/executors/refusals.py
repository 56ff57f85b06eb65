"""What sbatch has against a job, in one line, with what to change."""

import re

from nemotron.profiles import SlurmProfile

_PREFIX = re.compile(r"sbatch: (error: |fatal: )?(Batch job submission failed: )?|^sbatch refuses: ")
_NEXT_STEPS = (
    (
        r"configuration source|slurm\.conf",
        'this machine is no login node of a cluster: run this on one, or add host = "LOGIN_NODE" to the profile',
    ),
    (
        r"invalid.*account|account.*(not|invalid)",
        "correct account ({account}) or partition ({partition}) in the profile (`sacctmgr show assoc user=$USER` lists "
        "what is yours)",
    ),
    (
        r"partition.*(invalid|unavailable|inactive)|invalid partition",
        "correct partition ({partition}) in the profile (`sinfo -s` lists them)",
    ),
    (r"time limit|maxwall", "lower time ({time}) in the profile to what partition and QOS allow (`sinfo -o '%P %l'`)"),
    (r"qos", "correct qos ({qos}) in the profile (`sacctmgr show assoc user=$USER format=account,qos` lists yours)"),
    (r"gres", "lower gpus_per_node ({gpus_per_node}) in the profile: an evaluation needs none"),
    (r"memory", "lower mem ({mem} MiB) in the profile to what a node has (`sinfo -o '%P %m'`)"),
    (
        r"node configuration|more processors|cpu count|node count",
        "lower cpus_per_task, mem or gpus_per_node in the profile to what a node has (`sinfo -o '%P %c %m %G'`)",
    ),
    (r"feature", "correct constraint ({constraint}) in the profile (`sinfo -o '%P %f'` lists features)"),
    (r"reservation", "correct reservation ({reservation}) in the profile (`scontrol show reservation` lists them)"),
    (r"dependency", "correct dependency ({dependency}) in the profile"),
    (r"node name", "correct nodelist ({nodelist}) and exclude ({exclude}) in the profile (`sinfo -N` lists nodes)"),
    (r"unrecognized option|invalid option|ambiguous", "correct additional_parameters in the profile"),
    (r"unable to contact|timed out|connect", "Slurm's controller does not answer: try again later"),
)
"""The first that fits."""


def explained(said: str, profile: SlurmProfile) -> str:
    """`said` is all of it, on one line; what is not sbatch's explains itself."""
    if not said.startswith("sbatch refuses: "):
        return said
    words = _PREFIX.sub("", said).strip()
    known = {key: "not set" if value is None else value for key, value in profile.model_dump().items()}
    steps = (step.format_map(known) for pattern, step in _NEXT_STEPS if re.search(pattern, words, re.IGNORECASE))
    return (
        f"sbatch refuses: {words.rstrip('.')}; {next(steps, 'correct the profile, or ask those who run the cluster')}."
    )
