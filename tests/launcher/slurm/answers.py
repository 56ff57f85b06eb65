"""What a cluster of four nodes answers, as Slurm 22.05 prints it."""

from tests.fakes.slurm import FakeSlurm

PARTITIONS = (
    "PartitionName=cpu AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES QoS=N/A "
    "DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=04:00:00 Nodes=c[1-2] State=UP TotalCPUs=96 TotalNodes=2\n"
    "PartitionName=gpu AllowGroups=ALL AllowAccounts=eval,train AllowQos=ALL AllocNodes=ALL Default=NO QoS=N/A "
    "DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=2-00:00:00 Nodes=g1 State=UP TotalCPUs=64 TotalNodes=1\n"
    "PartitionName=old AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=NO QoS=N/A "
    "DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=UNLIMITED Nodes=o1 State=DOWN TotalCPUs=8 TotalNodes=1\n"
)
NODES = (
    "cpu|c1|idle|32|128000|(null)\ncpu|c2|mixed|64|256000|(null)\n"
    "gpu|g1|allocated|64|512000|gpu:a100:8(S:0-1)\nold|o1|down*|8|16000|(null)\n"
)
CONFIG = (
    "Configuration data as of 2026-11-30T00:21:00\n"
    "AccountingStorageEnforce = associations,limits,qos\n"
    "AccountingStorageType   = accounting_storage/slurmdbd\n"
    "ClusterName             = green\n"
)
QOS = "normal|\nbrief|00:10:00\ngold|\n"
ASSOCIATIONS = (
    "green|eval||brief,normal|normal||\n"
    "green|guest||normal|normal|2|01:00:00\n"
    "blue|evil||normal|normal||\n"
)  # fmt: skip


def teach(slurm: FakeSlurm) -> None:
    slurm.says("scontrol", PARTITIONS, when="show partition")
    slurm.says("scontrol", CONFIG, when="show config")
    slurm.says("sinfo", NODES)
    slurm.says("sacctmgr", "eval\n", when="show user")
    slurm.says("sacctmgr", QOS, when="show qos")
    slurm.says("sacctmgr", ASSOCIATIONS, when="show assoc")
