"""What sbatch says, in its own words, and what users read."""

import pytest

from nemotron.executors.refusals import explained
from nemotron.profiles import SlurmProfile

PROFILE = SlurmProfile(account="evil", partition="cpuu", qos="brif", time="9-00:00:00", mem="900G", constraint="avx")
FAILED = "sbatch refuses: sbatch: error: Batch job submission failed: "


@pytest.mark.parametrize(
    ("said", "next_step"),
    [
        (f"{FAILED}Invalid account or account/partition combination specified", "correct account (evil)"),
        (f"sbatch refuses: sbatch: error: invalid partition specified: cpuu {FAILED[16:]}Invalid partition name "
         "specified", "correct partition (cpuu)"),
        (f"{FAILED}Requested time limit is invalid (missing or exceeds some limit)", "lower time (777600)"),
        (f"{FAILED}Invalid qos specification", "correct qos (brif)"),
        (f"{FAILED}Memory specification can not be satisfied", "lower mem (921600 MiB)"),
        (f"{FAILED}Requested node configuration is not available", "lower cpus_per_task"),
        (f"{FAILED}Invalid generic resource (gres) specification", "lower gpus_per_node (0)"),
        (f"{FAILED}Invalid feature specification", "correct constraint (avx)"),
        (f"{FAILED}Requested reservation is invalid", "correct reservation (not set)"),
        (f"{FAILED}Job dependency problem", "correct dependency (not set)"),
        (f"{FAILED}Unable to contact slurm controller (connect failure)", "try again later"),
        ("sbatch refuses: sbatch: unrecognized option '--wkey=x'", "correct additional_parameters"),
        ("sbatch refuses: sbatch: fatal: Could not establish a configuration source", 'add host = "LOGIN_NODE"'),
        (f"{FAILED}Something never heard of", "ask those who run the cluster"),
    ],
)  # fmt: skip
def test_every_refusal_is_one_line_that_ends_in_what_to_do(said, next_step):
    line = explained(said, PROFILE)
    assert line.startswith("sbatch refuses: ") and "sbatch: error" not in line and "\n" not in line
    assert next_step in line.partition("; ")[2]


def test_what_is_not_sbatchs_is_left_as_it_is():
    assert explained("/home/me/jobs cannot be written: Disk quota exceeded", PROFILE).startswith("/home/me/jobs")
