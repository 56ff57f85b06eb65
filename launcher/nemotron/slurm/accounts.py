"""What accounting lets a user do: their associations, and what these say against a job."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nemotron.errors import unknown
from nemotron.slurm.demand import Demand, Objection, in_words
from nemotron.slurm.partitions import seconds_of

FORMAT = "cluster,account,partition,qos,defaultqos,maxsubmitjobs,maxwall"
"""For `sacctmgr -nP show assoc format=`."""
QOS_FORMAT = "name,maxwall"
"""For `sacctmgr -nP show qos format=`."""
DEFAULT_ACCOUNT = "defaultaccount"


@dataclass(frozen=True, slots=True)
class Association:
    """One way for the user to submit jobs."""

    cluster: str
    account: str
    partition: str
    """Empty: all of them."""
    qos: tuple[str, ...]
    default_qos: str
    max_submit: int | None
    """Jobs that may wait or run at a time."""
    max_seconds: int | None


def parse_associations(text: str) -> list[Association]:
    rows = [line.strip().split("|") for line in text.splitlines()]
    return [
        Association(
            row[0],
            row[1],
            row[2],
            tuple(name for name in row[3].split(",") if name),
            row[4],
            int(row[5]) if row[5].isdigit() else None,
            seconds_of(row[6]),
        )
        for row in rows
        if len(row) == 7
    ]


def parse_qos(text: str) -> dict[str, int | None]:
    """QOS -> how many seconds a job of it may take."""
    rows = [line.strip().split("|") for line in text.splitlines()]
    return {row[0]: seconds_of(row[1]) for row in rows if len(row) == 2 and " " not in row[0]}


def used(associations: Sequence[Association], demand: Demand, default_account: str) -> list[Association]:
    """Those that a job would be counted to."""
    account = (demand.account or default_account).lower()
    own = [one for one in associations if one.account == account]
    partitions = (demand.partition or "").split(",")
    return [one for one in own if one.partition in partitions] or [one for one in own if not one.partition]


def refused(
    associations: Sequence[Association], qos: Mapping[str, int | None], demand: Demand, default_account: str
) -> Iterator[Objection]:
    if not associations:
        what = "Accounting knows no account of yours on this cluster"
        yield Objection("no-account", what, "ask the cluster's support for one")
        return
    usable = used(associations, demand, default_account)
    if not usable:
        accounts = sorted({one.account for one in associations})
        what = unknown("account", demand.account or default_account, accounts).rstrip(".")
        yield Objection("account-unknown", what, "set account in the profile to one of these, which are yours")
        return
    yield from _limits(usable, qos, demand)


def _limits(usable: Sequence[Association], qos: Mapping[str, int | None], demand: Demand) -> Iterator[Objection]:
    account = usable[0].account
    allowed = sorted({name for one in usable for name in one.qos})
    chosen = (demand.qos or usable[0].default_qos).lower()
    if demand.qos and allowed and chosen not in allowed:
        what = f"Account {account} may not use QOS {demand.qos}, only {', '.join(allowed)}"
        yield Objection("qos-denied", what, "correct qos in the profile, or leave it out")
    limits = {f"QOS {chosen}": qos.get(chosen)}
    if all(one.max_seconds for one in usable):
        limits[f"account {account}"] = max(one.max_seconds or 0 for one in usable)
    for owner, limit in limits.items():
        if demand.seconds and limit and demand.seconds > limit:
            what = f"time {in_words(demand.seconds)} is above the limit of {owner}, {in_words(limit)}"
            yield Objection("time-limit", what, f'set time = "{in_words(limit)}" or less')
