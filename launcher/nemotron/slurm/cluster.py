"""What a cluster says of itself, asked in one round trip."""

import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from nemotron.slurm import accounts, partitions
from nemotron.slurm.accounts import Association, parse_associations, parse_qos, refused
from nemotron.slurm.answers import PLAIN
from nemotron.slurm.demand import Demand, Objection
from nemotron.slurm.partitions import Node, Partition, parse_nodes, parse_partitions, refusals
from nemotron.transport.base import Done, Session

ANSWER_SECONDS = 120.0
"""Commands wait long for a controller or a database that is down."""
QUESTIONS = {
    "user": "id -un",
    "partitions": "scontrol show partition -o",
    "nodes": f"sinfo -h -N -o '{partitions.NODE_FORMAT}'",
    "config": "scontrol show config",
    "default account": f'sacctmgr -nP show user name="$(id -un)" format={accounts.DEFAULT_ACCOUNT}',
    "qos": f"sacctmgr -nP show qos format={accounts.QOS_FORMAT}",
    "associations": f'sacctmgr -nP show assoc where user="$(id -un)" format={accounts.FORMAT}',
}
_SETTING = re.compile(r"^(\w+)\s*=\s*(\S*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cluster:
    name: str
    user: str
    partitions: tuple[Partition, ...]
    nodes: tuple[Node, ...]
    associations: tuple[Association, ...]
    """Of the user."""
    default_account: str
    qos: Mapping[str, int | None]
    """Name -> how many seconds a job of it may take."""
    enforces_associations: bool
    """Whether a job without a valid account is refused."""
    silent: Mapping[str, str] = field(default_factory=dict)
    """Questions without an answer -> what was said instead."""


def cluster_of(session: Session) -> Cluster:
    said = ask_together(session, QUESTIONS)
    settings = dict(_SETTING.findall(said["config"].stdout))
    name = settings.get("ClusterName", "")
    associations = parse_associations(said["associations"].stdout)
    return Cluster(
        name,
        _last_word(said["user"]),
        tuple(parse_partitions(said["partitions"].stdout)),
        tuple(parse_nodes(said["nodes"].stdout)),
        tuple(one for one in associations if not name or one.cluster.lower() == name.lower()),
        _last_word(said["default account"]),
        parse_qos(said["qos"].stdout),
        "associations" in settings.get("AccountingStorageEnforce", "").lower(),
        {question: done.said for question, done in said.items() if done.code},
    )


def objections(cluster: Cluster, demand: Demand) -> Iterator[Objection]:
    """Nothing is held against a job where the cluster gave no answer."""
    if cluster.partitions:
        yield from refusals(cluster.partitions, cluster.nodes, demand)
    if cluster.enforces_associations and "associations" not in cluster.silent:
        yield from refused(cluster.associations, cluster.qos, demand, cluster.default_account)


def ask_together(session: Session, questions: Mapping[str, str]) -> dict[str, Done]:
    """Several lines of shell in one round trip, each with its own code; their standard error is in their answer."""
    mark = secrets.token_hex(8)
    lines = [f"{{ {line}; }} 2>&1; printf '\\n{mark} %s\\n' $?" for line in questions.values()]
    done = session.run([*PLAIN, "sh", "-c", "\n".join(lines)], timeout=ANSWER_SECONDS)
    *answers, rest = re.split(rf"\n{mark} (\d+)\n", done.stdout)
    pairs = zip(answers[::2], answers[1::2], strict=True)
    found = [Done(int(code), text, "") for text, code in pairs]
    missing = [Done(done.code or 1, "", done.stderr or rest)] * (len(questions) - len(found))
    return dict(zip(questions, found + missing, strict=True))


def _last_word(done: Done) -> str:
    """A site's greeting may come before it."""
    return "" if done.code else next(iter(done.stdout.split()[-1:]), "")
