"""A whole Slurm cluster on loopback, with accounting: `python cluster.py STATE [TASK_VARIABLE=VALUE]...`.

Two nodes that are this machine, so every folder is shared storage. Partition cpu (the default) can be preempted by
urgent, grace too but with a warning, short allows two minutes. Account eval has this user, limited too with at most two
jobs, closed nobody. Everything lies in STATE: slurm.conf, and logs/ of each daemon. Ready once STATE/ready is there.
"""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from getpass import getuser
from pathlib import Path

PORTS = "slurmctld", "slurmdbd", "mariadbd", "n1", "n2"
BELOW_EPHEMERAL = 10_000, 32_000
"""No connection of somebody else gets its port here, between the look and the daemon's start."""
NODES = "n1", "n2"
START_SECONDS = 120

# A requeued job waits cred_expire + 1 s; memory is counted, and a job that takes more than it asked for is killed.
SLURM = """\
ClusterName=testbed
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={slurmctld}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={state}/munge.sock,cred_expire=5
StateSaveLocation={state}/controller
SlurmdSpoolDir={state}/spool/%n
SlurmctldPidFile={state}/slurmctld.pid
SlurmdPidFile={state}/slurmd-%n.pid
SlurmctldLogFile={state}/logs/slurmctld
SlurmdLogFile={state}/logs/slurmd-%n
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={slurmdbd}
AccountingStoragePass={state}/munge.sock
AccountingStorageEnforce=associations,limits,qos
AccountingStoreFlags=job_comment
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=2
JobAcctGatherParams=OverMemoryKill
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog={state}/task-prolog
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=200
ReturnToService=2
MpiDefault=none
SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1
PreemptMode=REQUEUE
PreemptType=preempt/partition_prio
KillWait=20
MinJobAge=30
MaxArraySize=100
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={n1} CPUs=16 RealMemory=64000 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={n2} CPUs=16 RealMemory=64000 State=UNKNOWN
PartitionName=cpu Nodes=n1,n2 Default=YES MaxTime=INFINITE PriorityTier=1
PartitionName=grace Nodes=n1,n2 MaxTime=INFINITE PriorityTier=1 GraceTime=20
PartitionName=short Nodes=n1,n2 MaxTime=2 PriorityTier=1
PartitionName=urgent Nodes=n1,n2 MaxTime=INFINITE PriorityTier=10
"""
ACCOUNTING = """\
AuthType=auth/munge
AuthInfo=socket={state}/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={slurmdbd}
SlurmUser={user}
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={mariadbd}
StorageUser={user}
StorageLoc=slurm
PidFile={state}/slurmdbd.pid
LogFile={state}/logs/slurmdbd
"""
DATABASE = """\
[mariadbd]
user={user}
datadir={state}/database
socket={state}/mariadb.sock
pid-file={state}/mariadb.pid
bind-address=127.0.0.1
port={mariadbd}
skip-grant-tables
innodb-buffer-pool-size=32M
innodb-log-file-size=16M
innodb-flush-log-at-trx-commit=0
"""
ASSOCIATIONS = """\
add cluster testbed
add account eval,limited,closed Cluster=testbed
add qos brief MaxWall=00:10:00
add user {user} Account=eval DefaultAccount=eval QosLevel=normal,brief
add user {user} Account=limited MaxSubmitJobs=2
"""


def main(state: Path, task_variables: list[str]) -> None:
    cluster = Cluster(state, task_variables)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        cluster.start()
        (state / "ready").touch()
        signal.pause()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        cluster.stop()


class Cluster:
    def __init__(self, state: Path, task_variables: list[str]) -> None:
        self._state = state
        self._children: list[subprocess.Popen[bytes]] = []
        self._environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SLURM")},
            "SLURM_CONF": str(state / "slurm.conf"),
            "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
        }
        write_files(state, task_variables)

    def start(self) -> None:
        self._run("mariadb-install-db", f"--defaults-file={self._state}/my.cnf", "--skip-test-db")
        self._daemon("mariadbd", f"--defaults-file={self._state}/my.cnf")
        self._daemon("munged", *munge_options(self._state))
        self._until("munge", "-n", f"--socket={self._state}/munge.sock")
        self._until("mariadb-admin", f"--socket={self._state}/mariadb.sock", "ping")
        self._daemon("slurmdbd", "-D")
        self._until("sacctmgr", "-n", "list", "cluster")
        for line in ASSOCIATIONS.format(user=getuser()).splitlines():
            self._run("sacctmgr", "-i", *line.split())
        self._daemon("slurmctld", "-D", "-f", f"{self._state}/slurm.conf")
        for node in NODES:
            self._daemon("slurmd", "-D", "-N", node, "-f", f"{self._state}/slurm.conf")
        self._until("sinfo", "-h", "-t", "idle", "-o", "%D", accepts=lambda said: said.strip() == str(len(NODES)))

    def stop(self) -> None:
        """Jobs first, since nobody would end them later; all within the time that a part of the testbed gets."""
        if (self._state / "ready").exists():
            self._run("scancel", "--quiet", "--full", "--signal=KILL", "--user", getuser(), check=False)
            self._until("squeue", "-h", "-t", "R,CG", accepts=lambda said: not said, seconds=3, check=False)
        for child in self._children:
            child.terminate()
        deadline = time.monotonic() + 4
        for child in self._children:
            try:
                child.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def _daemon(self, name: str, *arguments: str) -> None:
        with (self._state / "logs" / f"{name}.out").open("ab") as log:
            child = subprocess.Popen([name, *arguments], stdout=log, stderr=log, env=self._environ)
        self._children.append(child)

    def _run(self, *command: str, check: bool = True) -> None:
        done = subprocess.run(command, env=self._environ, capture_output=True, text=True, timeout=START_SECONDS)
        if check and done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stdout} {done.stderr}")

    def _until(
        self,
        *command: str,
        accepts: Callable[[str], bool] = lambda said: True,
        seconds: int = START_SECONDS,
        check: bool = True,
    ) -> None:
        """Wait until the command succeeds with an acceptable answer."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            done = subprocess.run(command, env=self._environ, capture_output=True, text=True)
            if done.returncode == 0 and accepts(done.stdout):
                return
            time.sleep(0.2)
        if check:
            sys.exit(f"{' '.join(command)} did not work within {seconds} s: {done.stdout} {done.stderr}")


def write_files(state: Path, task_variables: list[str]) -> None:
    shutil.rmtree(state / "database", ignore_errors=True)
    for folder in "controller", "database", "logs", *(f"spool/{node}" for node in NODES):
        (state / folder).mkdir(parents=True, exist_ok=True)
    values = {"state": state, "user": getuser(), "host": socket.gethostname().split(".")[0], **free_ports()}
    (state / "slurm.conf").write_text(SLURM.format(**values))
    (state / "slurmdbd.conf").touch(mode=0o600)
    (state / "slurmdbd.conf").write_text(ACCOUNTING.format(**values))
    (state / "my.cnf").write_text(DATABASE.format(**values))
    (state / "munge.key").touch(mode=0o600)
    (state / "munge.key").write_bytes(os.urandom(128))
    prolog = state / "task-prolog"
    prolog.write_text("#!/bin/sh\n" + "".join(f"echo 'export {variable}'\n" for variable in task_variables))
    prolog.chmod(0o755)


def munge_options(state: Path) -> list[str]:
    """In the foreground, and in a folder that others may write to."""
    files = {"socket": "munge.sock", "key-file": "munge.key", "pid-file": "munge.pid", "seed-file": "munge.seed"}
    options = [f"--{option}={state / name}" for option, name in files.items()]
    return ["--foreground", "--force", "--num-threads=10", f"--log-file={state}/logs/munged", *options]


def free_ports() -> dict[str, int]:
    """In a row, somewhere by chance: two clusters may start at once."""
    while True:
        first = random.randrange(*BELOW_EPHEMERAL)
        if all(is_free(first + number) for number in range(len(PORTS))):
            return {name: first + number for number, name in enumerate(PORTS)}


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
