"""A Slurm profile, from the login node to the compute node."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nemotron.doctor.clock import Reading, clock_findings
from nemotron.doctor.containers import (
    engine_image,
    image_findings,
    pull_findings,
    registry_url,
    runtime_findings,
    tools,
)
from nemotron.doctor.endpoint import endpoint_findings
from nemotron.doctor.examination import Check
from nemotron.doctor.facts import PROGRAM, Facts, parse_facts
from nemotron.doctor.finding import Finding, fail, ok, warn
from nemotron.doctor.hub import hub_findings, hub_items, hub_of
from nemotron.doctor.node import StillWaiting, facts_from_node, probe_job
from nemotron.doctor.storage import folder_findings, mount_findings, quota_findings
from nemotron.executors.demands import demand_of
from nemotron.hub import is_offline
from nemotron.images.reference import Reference, parse_image
from nemotron.job import Job
from nemotron.profiles import SlurmProfile
from nemotron.slurm.cluster import Cluster, cluster_of, objections
from nemotron.slurm.demand import in_words
from nemotron.slurm.folder import DEFAULT_JOB_DIR
from nemotron.slurm.partitions import chosen
from nemotron.transport.base import Session
from nemotron.transport.reach import session_for

ACCOUNTING = ("no-account", "account-unknown", "qos-denied")
"""Codes of objections that are about accounts and not about partitions."""


@dataclass(slots=True)
class SlurmPatient:
    """What one check learns, later ones use."""

    profile: SlurmProfile
    job: Job | None
    """None where the suite cannot be resolved."""
    environ: Mapping[str, str] = field(repr=False)
    wait_seconds: float
    session: Session = field(init=False)
    cluster: Cluster = field(init=False)
    on_login: Facts = field(init=False)
    on_node: Facts = field(init=False)
    readings: list[Reading] = field(default_factory=list)

    def checks(self, *, has_node: bool) -> list[Check]:
        login = [
            Check("login", self.look_at_login),
            Check("python", self.look_at_python, ("login",)),
            Check("slurm", self.look_at_slurm, ("login",)),
            Check("partition", self.look_at_partition, ("login", "slurm")),
            Check("account", self.look_at_account, ("login", "slurm")),
            Check("storage", self.look_at_storage, ("login", "python")),
            Check("runtime", self.look_at_runtime, ("login", "python")),
            Check("image", self.look_at_image, ("login", "python", *self._suite)),
        ]
        node = [
            Check("node", self.look_at_node, ("login", "python", "slurm", "partition", "account")),
            Check("node storage", self.look_at_node_storage, ("node",)),
            Check("node runtime", self.look_at_node_runtime, ("node",)),
            Check("endpoint", self.look_at_endpoint, ("node", *self._suite)),
            Check("hub", self.look_at_hub, ("node", *self._suite)),
        ]
        return [*login, *(node if has_node else ()), Check("clock", self.look_at_clocks, ("login", "python"))]

    @property
    def _suite(self) -> tuple[str, ...]:
        return () if self.job else ("suite",)

    def look_at_login(self) -> Iterator[Finding]:
        began = time.monotonic()
        self.session = session_for(self.profile, self.environ)
        self.session.run(["true"])
        seconds = time.monotonic() - began
        yield ok("This machine, without SSH" if self.session.is_here else f"{self.session.name}, in {seconds:.1f} s")

    def look_at_python(self) -> Iterator[Finding]:
        before = time.time()
        done = self.session.run(["python3", "-I", "-", json.dumps(self._questions(is_node=False))], stdin=PROGRAM)
        after = time.time()
        if done.code:
            action = (
                "jobs need one there and on the nodes, 3.6 or later: ask for it, or put it on the PATH of ssh commands"
            )
            yield fail(f"python3 does not run on {self.session.name}: {done.said}", action, "python")
            return
        self.on_login = parse_facts(done.stdout.splitlines())
        self.readings.append(Reading(self.session.name, self.on_login.now, before, after))
        yield ok(f"python3 {self.on_login.python} on {self.on_login.host}, as user {self.on_login.user}")

    def look_at_slurm(self) -> Iterator[Finding]:
        done = self.session.run(["sbatch", "--version"])
        if done.code:
            action = "choose a login node of the cluster, or put Slurm on the PATH that commands have there"
            yield fail(f"{self.session.name} has no sbatch: {done.said}", action, "sbatch")
            return
        self.cluster = cluster_of(self.session)
        if said := self.cluster.silent.get("partitions"):
            yield fail(f"Slurm's controller gives no answer: {said}", "wait for it, or ask the site", "controller")
            return
        yield ok(f"{done.stdout.strip()}, cluster {self.cluster.name or '(unnamed)'}")

    def look_at_partition(self) -> Iterator[Finding]:
        found = [one for one in objections(self.cluster, demand_of(self.profile)) if one.code not in ACCOUNTING]
        for objection in found:
            make = fail if objection.is_certain else warn
            yield make(objection.what, objection.action, objection.code)
        for partition in chosen(self.cluster.partitions, self.profile.partition) if not found else ():
            nodes = [node for node in self.cluster.nodes if node.partition == partition.name]
            available = [node for node in nodes if node.is_available]
            limit = f"time limit {in_words(partition.max_seconds)}" if partition.max_seconds else "no time limit"
            yield ok(f"Partition {partition.name} is up, {len(available)} of {len(nodes)} nodes available, {limit}")
            if nodes and not available:
                states = ", ".join(sorted({node.state for node in nodes}))
                action = "jobs wait until one is back: choose another partition, or ask the site"
                yield warn(f"No node of partition {partition.name} is available ({states})", action, "nodes")

    def look_at_account(self) -> Iterator[Finding]:
        found = [one for one in objections(self.cluster, demand_of(self.profile)) if one.code in ACCOUNTING]
        for objection in found:
            yield fail(objection.what, objection.action, objection.code)
        if found:
            return
        if said := self.cluster.silent.get("associations"):
            yield warn(
                f"Accounting gives no answer: {said}", "submission will tell whether the account will do", "accounting"
            )
            return
        name = self.profile.account or self.cluster.default_account
        limits = {one.max_submit for one in self.cluster.associations if one.account == name.lower() and one.max_submit}
        most = f", at most {min(limits)} jobs at a time" if limits else ""
        yield ok(f"Account {name or '(none needed)'} of user {self.cluster.user or self.on_login.user}{most}")

    def look_at_storage(self) -> Iterator[Finding]:
        yield from self._storage(self.on_login)
        yield from quota_findings(self.on_login.quota)

    def look_at_runtime(self) -> Iterator[Finding]:
        yield from runtime_findings(self.profile, self.on_login, is_node=False)

    def look_at_image(self) -> Iterator[Finding]:
        if self._image is None:
            yield ok("No image: jobs run in the environment of the nodes")
            return
        yield from image_findings(self._image, self.session, self.profile.image_cache_dir, self.on_login, self.environ)

    def look_at_node(self) -> Iterator[Finding]:
        folder = self._job_dir.replace("~", self.on_login.home, 1)
        job = probe_job(self._questions(is_node=True), self.job, folder)
        before = time.time()
        try:
            self.on_node = facts_from_node(self.profile, job, self.environ, self.wait_seconds, time.monotonic)
        except StillWaiting as waiting:
            action = "it was cancelled; give it longer with --wait, or leave it out with --no-job"
            yield fail(f"No job of two minutes began: {waiting}", action, "waiting")
            return
        self.readings.append(Reading(f"node {self.on_node.host}", self.on_node.now, before, time.time()))
        yield ok(
            f"A job ran on {self.on_node.host} after {time.time() - before:.0f} s, with python {self.on_node.python}"
        )

    def look_at_node_storage(self) -> Iterator[Finding]:
        yield from self._storage(self.on_node)

    def look_at_node_runtime(self) -> Iterator[Finding]:
        yield from runtime_findings(self.profile, self.on_node, is_node=True)
        if isinstance(self._image, Reference) and not self.profile.image_cache_dir:
            yield from pull_findings(self._image, registry_url(self._image, self.environ), self.on_node)

    def look_at_endpoint(self) -> Iterator[Finding]:
        assert self.job is not None
        yield from endpoint_findings(self.job.plan["model"], self.on_node, is_here=False)

    def look_at_hub(self) -> Iterator[Finding]:
        assert self.job is not None
        items = hub_items(self.job.plan)
        yield from hub_findings(self._hub, items, self.on_node, is_offline=is_offline(self.job.env))

    def look_at_clocks(self) -> Iterator[Finding]:
        yield from clock_findings([reading for reading in self.readings if reading.place != "this machine"])

    def _storage(self, facts: Facts) -> Iterator[Finding]:
        yield from mount_findings(self.profile.mounts, facts)
        if self.job:
            yield from folder_findings("Results folder", self.job.output_dir, "EVAL_RESULTS_DIR", facts)
        yield from folder_findings("Job folder", self._job_dir, "remote_job_dir", facts)

    def _questions(self, *, is_node: bool) -> dict[str, Any]:
        results = [self.job.output_dir] if self.job else []
        image = [str(self._image)] if isinstance(self._image, Path) else []
        questions: dict[str, Any] = {
            "sources": [*(mount.source for mount in self.profile.mounts), *image],
            "folders": [*results, self._job_dir],
            "commands": tools(self.profile),
            "pyxis": self.profile.container_runtime == "pyxis",
            "quota": not is_node,
        }
        if is_node and self.job:
            questions["endpoint"] = True
            questions["urls"] = [self._hub]
            questions["hub_items"] = list(hub_items(self.job.plan))
        if is_node and isinstance(self._image, Reference):
            questions["urls"].append(registry_url(self._image, self.environ))
            questions["engine_image"] = engine_image(self.profile, self._image)
        return questions

    @property
    def _image(self) -> Reference | Path | None:
        return parse_image(self.job.image, Path.cwd()) if self.job and self.job.image else None

    @property
    def _job_dir(self) -> str:
        return self.profile.remote_job_dir or DEFAULT_JOB_DIR

    @property
    def _hub(self) -> str:
        return hub_of(self.job.env if self.job else {})
