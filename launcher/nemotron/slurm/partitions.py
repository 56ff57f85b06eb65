"""Partitions and nodes as the controller describes them, and what they cannot give a job."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nemotron.errors import unknown
from nemotron.slurm.demand import Demand, Objection, in_words

NODE_FORMAT = "%R|%N|%T|%c|%m|%G"
"""For `sinfo -h -N -o`: partition, node, state, CPUs, MiB, generic resources."""
_AWAY = re.compile(r"down|drain|fail|maint|unknown|not_?resp|power(ed|ing)_down|reboot|inval|future|\*$")
_FIELD = re.compile(r"(\w+)=(\S*)")
_TIME = re.compile(r"(?:(\d+)-)?(\d+(?::\d+){0,2})")


@dataclass(frozen=True, slots=True)
class Partition:
    name: str
    state: str
    """UP, DOWN, DRAIN or INACTIVE."""
    is_default: bool
    max_seconds: int | None
    accounts: tuple[str, ...] | None
    """That may use it; None: all."""
    denied_accounts: tuple[str, ...]
    qos: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Node:
    partition: str
    name: str
    state: str
    cpus: int
    memory_mib: int
    gpus: int

    @property
    def is_available(self) -> bool:
        """Busy counts, too."""
        return not _AWAY.search(self.state)


def parse_partitions(text: str) -> list[Partition]:
    """`scontrol show partition -o`."""
    described = [dict(_FIELD.findall(line)) for line in text.splitlines() if "PartitionName=" in line]
    return [
        Partition(
            said["PartitionName"],
            said.get("State", "UP"),
            said.get("Default") == "YES",
            seconds_of(said.get("MaxTime", "")),
            _names(said.get("AllowAccounts", "ALL")),
            _names(said.get("DenyAccounts", "")) or (),
            _names(said.get("AllowQos", "ALL")),
        )
        for said in described
    ]


def parse_nodes(text: str) -> list[Node]:
    """Lines in NODE_FORMAT; others, such as a site's greeting, are passed over. `64000+` is at least so much."""
    rows = [line.strip().split("|") for line in text.splitlines()]
    return [
        Node(row[0], row[1], row[2], int(row[3].rstrip("+")), int(row[4].rstrip("+")), gpus_of(row[5]))
        for row in rows
        if len(row) == 6 and row[3].rstrip("+").isdigit() and row[4].rstrip("+").isdigit()
    ]


def seconds_of(text: str) -> int | None:
    """`2-00:00:00`, `04:00:00`, `02:00` (minutes first); None where there is no limit."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    days, parts = match[1], [int(part) for part in match[2].split(":")]
    parts = [0, *parts] if len(parts) == 2 and not days else parts
    hours, minutes, seconds = (*parts, 0, 0)[:3]
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def gpus_of(gres: str) -> int:
    """`gpu:a100:8(S:0-1),gpu:2` is 10."""
    return sum(int(count) for count in re.findall(r"(?:^|,)gpu(?::[^:,()]+)?:(\d+)", gres))


def chosen(partitions: Sequence[Partition], name: str | None) -> list[Partition]:
    """Those a job may start in; Slurm takes the default one where none is named, and several with commas between."""
    if name is None:
        return [partition for partition in partitions if partition.is_default]
    return [partition for partition in partitions if partition.name in name.split(",")]


def refusals(partitions: Sequence[Partition], nodes: Sequence[Node], demand: Demand) -> Iterator[Objection]:
    """What speaks against a job in every partition that it may start in."""
    known = [partition.name for partition in partitions]
    if missing := [name for name in (demand.partition or "").split(",") if name and name not in known]:
        yield Objection(
            "partition-unknown", unknown("partition", missing[0], known).rstrip("."), "correct partition in the profile"
        )
        return
    candidates = chosen(partitions, demand.partition)
    if not candidates:
        yield Objection("partition-missing", "The cluster has no default partition", f"set partition to {_or(known)}")
        return
    found = [list(_refusals(partition, nodes, demand)) for partition in candidates]
    if all(found):
        yield from min(found, key=len)


def _refusals(partition: Partition, nodes: Sequence[Node], demand: Demand) -> Iterator[Objection]:
    name, own = partition.name, [node for node in nodes if node.partition == partition.name]
    if partition.state not in ("UP", "DRAIN"):
        yield Objection("partition-down", f"Partition {name} is {partition.state}", "choose another partition, or wait")
    if partition.state == "DRAIN":
        yield Objection("partition-down", f"Partition {name} takes no new jobs", "choose another partition, or wait")
    limit = partition.max_seconds
    if demand.seconds and limit and demand.seconds > limit:
        what = f"time {in_words(demand.seconds)} is above the limit of partition {name}, {in_words(limit)}"
        action = f'set time = "{in_words(limit)}" or less; what is not done by then goes on after a requeue'
        yield Objection("time-limit", what, action, is_certain=demand.qos is None)  # a QOS may lift it
    if demand.qos and partition.qos is not None and demand.qos.lower() not in partition.qos:
        what = f"QOS {demand.qos} may not be used in partition {name}"
        yield Objection("qos-denied", what, f"choose {_or(partition.qos)}, or another partition")
    if demand.account and _is_denied(partition, demand.account):
        yield Objection(
            "account-denied",
            f"Account {demand.account} may not use partition {name}",
            f"choose one of {_or(partition.accounts)}" if partition.accounts else "choose another partition",
        )
    if own:
        yield from _too_large(name, own, demand)


def _too_large(partition: str, nodes: Sequence[Node], demand: Demand) -> Iterator[Objection]:
    """One node must have all of it, as a job gets one."""
    most = {"cpus": 0, "memory": 0, "gpus": 0}
    for node in nodes:
        most = {
            "cpus": max(most["cpus"], node.cpus),
            "memory": max(most["memory"], node.memory_mib),
            "gpus": max(most["gpus"], node.gpus),
        }
    if demand.gpus > most["gpus"]:
        has = f"nodes of partition {partition} have {most['gpus'] or 'none'}"
        yield Objection(
            "gpus", f"gpus_per_node {demand.gpus}: {has}", "an evaluation needs none: set gpus_per_node = 0"
        )
    if (demand.cpus or 0) > most["cpus"]:
        has = f"the largest node of partition {partition} has {most['cpus']}"
        yield Objection("cpus", f"cpus_per_task {demand.cpus}: {has}", "ask for fewer")
    if (demand.memory_mib or 0) > most["memory"]:
        has = f"the largest node of partition {partition} has {most['memory']}M"
        yield Objection("memory", f"mem {demand.memory_mib}M: {has}", "ask for less")


def _is_denied(partition: Partition, account: str) -> bool:
    """Slurm keeps accounts in lower case."""
    name = account.lower()
    return name in partition.denied_accounts or (partition.accounts is not None and name not in partition.accounts)


def _names(text: str) -> tuple[str, ...] | None:
    return None if text in ("ALL", "") else tuple(text.lower().split(","))


def _or(names: Sequence[str]) -> str:
    return " or ".join(names)
