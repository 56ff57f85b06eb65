"""What a cluster says of itself, and what speaks against a job there before it is submitted."""

import os
from dataclasses import replace

import pytest

from nemotron.slurm.cluster import cluster_of, objections
from nemotron.slurm.demand import Demand, in_words
from nemotron.slurm.partitions import gpus_of, parse_nodes, parse_partitions, seconds_of
from nemotron.transport.here import Here
from tests.fakes.slurm import FakeSlurm
from tests.launcher.slurm.answers import teach


@pytest.fixture
def slurm(tmp_path):
    with FakeSlurm.at(tmp_path / "slurm") as fake:
        teach(fake)
        yield fake


@pytest.fixture
def cluster(slurm):
    return cluster_of(Here(slurm.environ(os.environ)))


def codes(cluster, **demand) -> list[str]:
    return [objection.code for objection in objections(cluster, Demand(**demand))]


class TestAnswers:
    def test_all_is_known_after_one_round_trip(self, slurm, cluster):
        assert (cluster.name, cluster.default_account, cluster.silent) == ("green", "eval", {})
        assert [partition.name for partition in cluster.partitions] == ["cpu", "gpu", "old"]
        assert len(cluster.nodes) == 4 and cluster.associations[0].account == "eval"
        assert len(slurm.calls("sacctmgr")) == 3

    def test_a_greeting_in_every_answer_is_no_part_of_it(self, slurm, cluster):
        slurm.turn(banner="Welcome to GREEN | be kind\n")
        assert cluster_of(Here(slurm.environ(os.environ))) == cluster

    def test_what_gives_no_answer_is_named_and_holds_nothing_against_a_job(self, slurm):
        for command in ("scontrol", "sinfo", "sacctmgr"):
            slurm.says(command, stderr="Unable to contact slurm controller\n", code=1)
        silent = cluster_of(Here(slurm.environ(os.environ)))
        assert set(silent.silent) == {"partitions", "nodes", "config", "default account", "qos", "associations"}
        assert "Unable to contact" in silent.silent["partitions"] and codes(silent, partition="none") == []

    def test_associations_of_another_cluster_do_not_count(self, cluster):
        assert all(one.cluster == "green" for one in cluster.associations)

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("UNLIMITED", None),
            ("2-00:00:00", 172800),
            ("04:00:00", 14400),
            ("02:30", 150),
            ("1-12", 129600),
            ("", None),
        ],
    )
    def test_times_are_read_as_slurm_writes_them(self, text, seconds):
        assert seconds_of(text) == seconds

    @pytest.mark.parametrize(("seconds", "text"), [(172805, "2-00:00:05"), (14400, "04:00:00")])
    def test_times_are_said_as_slurm_writes_them(self, seconds, text):
        assert in_words(seconds) == text

    @pytest.mark.parametrize(
        ("gres", "gpus"), [("(null)", 0), ("gpu:8", 8), ("gpu:a100:8(S:0-1),gpu:2", 10), ("shard:gpu:64,mps:400", 0)]
    )
    def test_gpus_are_counted(self, gres, gpus):
        assert gpus_of(gres) == gpus

    @pytest.mark.parametrize(
        ("state", "is_available"),
        [("idle", True), ("mixed", True), ("idle*", False), ("drained", False), ("down", False)],
    )
    def test_nodes_that_take_no_jobs_are_away(self, state, is_available):
        (node,) = parse_nodes(f"cpu|n1|{state}|16|64000+|(null)")
        assert node.is_available == is_available and node.memory_mib == 64000

    def test_lines_that_are_none_are_passed_over(self):
        assert parse_partitions("slurm_load_partitions: hello\n") == [] and parse_nodes("a|b\n") == []


class TestObjections:
    @pytest.mark.parametrize(
        ("demand", "found"),
        [
            ({}, []),
            ({"partition": "cpu", "seconds": 14400, "cpus": 64, "memory_mib": 256000}, []),
            ({"partition": "cpu", "seconds": 14401}, ["time-limit"]),
            ({"partition": "gpu", "gpus": 8}, []),
            ({"partition": "gpu", "gpus": 9}, ["gpus"]),
            ({"partition": "cpu", "gpus": 1}, ["gpus"]),
            ({"partition": "cpu", "cpus": 65, "memory_mib": 256001}, ["cpus", "memory"]),
            ({"partition": "cpu", "gpus": 1, "cpus": 65}, ["gpus", "cpus"]),
            ({"partition": "old"}, ["partition-down"]),
            ({"partition": "cpuu"}, ["partition-unknown"]),
            ({"account": "evil"}, ["account-unknown"]),
            ({"account": "EVAL"}, []),
            ({"partition": "gpu", "account": "guest"}, ["account-denied"]),
            ({"qos": "gold"}, ["qos-denied"]),
            ({"qos": "brief", "seconds": 601}, ["time-limit"]),
            ({"account": "guest", "seconds": 3601}, ["time-limit"]),
        ],
    )
    def test_each_fault_has_a_code_of_its_own(self, cluster, demand, found):
        assert codes(cluster, **demand) == found

    def test_one_of_several_partitions_is_enough(self, cluster):
        assert codes(cluster, partition="cpu,gpu", gpus=8) == []

    def test_they_name_the_value_what_there_is_and_the_next_step(self, cluster):
        (objection,) = objections(cluster, Demand(partition="cpu", seconds=86400))
        assert objection.what == "time 1-00:00:00 is above the limit of partition cpu, 04:00:00"
        assert 'set time = "04:00:00"' in objection.action

    @pytest.mark.parametrize("demand", [Demand(partition="cpuu"), Demand(account="evil")])
    def test_what_is_found_goes_on_in_one_sentence(self, cluster, demand):
        (objection,) = objections(cluster, demand)
        assert "There are" in objection.what and not objection.what.endswith(".")

    def test_a_qos_may_lift_the_limit_of_a_partition(self, cluster):
        (objection,) = objections(cluster, Demand(partition="cpu", qos="normal", seconds=86400))
        assert not objection.is_certain

    def test_without_a_default_partition_one_must_be_named(self, cluster):
        none = tuple(replace(partition, is_default=False) for partition in cluster.partitions)
        assert codes(replace(cluster, partitions=none)) == ["partition-missing"]

    def test_who_has_no_account_is_told_where_accounts_are_needed(self, cluster):
        assert codes(replace(cluster, associations=())) == ["no-account"]
        assert codes(replace(cluster, associations=(), enforces_associations=False)) == []
