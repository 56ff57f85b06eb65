"""Whether a cluster can give what profiles ask for, known before anything is submitted there."""

from collections.abc import Mapping, Sequence

from nemotron.errors import SubmitError
from nemotron.profiles import SlurmProfile
from nemotron.slurm.cluster import Cluster, cluster_of, objections
from nemotron.slurm.demand import Demand, Objection
from nemotron.transport.base import Session
from nemotron.transport.reach import session_for


def demand_of(profile: SlurmProfile) -> Demand:
    return Demand(
        profile.partition,
        profile.account,
        profile.qos,
        profile.time,
        profile.cpus_per_task,
        profile.mem,
        profile.gpus_per_node,
    )


def objected(profiles: Sequence[SlurmProfile], environ: Mapping[str, str]) -> list[list[Objection]]:
    """To each of several profiles; a cluster is asked once, and one that gives no answer objects to nothing."""
    clusters: dict[object, Cluster | None] = {}
    found = []
    for profile in profiles:
        if profile.backend not in clusters:
            clusters[profile.backend] = _asked(session_for(profile, environ))
        cluster = clusters[profile.backend]
        found.append(list(objections(cluster, demand_of(profile))) if cluster else [])
    return found


def _asked(session: Session) -> Cluster | None:
    try:
        return cluster_of(session)
    except SubmitError:
        return None  # whoever submits there meets the same, and says so
