"""A profile of the local container engine, down to what a container of the image reaches."""

import contextlib
import io
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from nemotron.doctor.endpoint import endpoint_findings
from nemotron.doctor.examination import Check
from nemotron.doctor.facts import PROGRAM, Facts, parse_facts
from nemotron.doctor.finding import Finding, fail, ok
from nemotron.doctor.hub import hub_findings, hub_items, hub_of
from nemotron.doctor.probe import answers
from nemotron.doctor.storage import folder_findings, mount_findings
from nemotron.executors.docker import DockerExecutor
from nemotron.hub import is_offline
from nemotron.job import Job
from nemotron.profiles import DockerProfile


@dataclass(slots=True)
class DockerPatient:
    profile: DockerProfile
    job: Job | None
    """None where the suite cannot be resolved."""
    environ: Mapping[str, str] = field(repr=False)
    inside: Facts = field(init=False)

    def checks(self, *, has_container: bool) -> list[Check]:
        container = [
            Check("container", self.look_at_container, ("engine", "storage", "suite")),
            Check("container storage", self.look_at_inner_storage, ("container",)),
            Check("endpoint", self.look_at_endpoint, ("container",)),
            Check("hub", self.look_at_hub, ("container",)),
        ]
        here = [Check("engine", self.look_at_engine), Check("storage", self.look_at_storage, ("suite",))]
        return [*here, *(container if has_container else ())]

    def look_at_engine(self) -> Iterator[Finding]:
        yield ok(f"{self._executor().engine()} answers")

    def look_at_storage(self) -> Iterator[Finding]:
        job = self._job()
        sources = [mount.source for mount in job.mounts]
        facts = Facts.of(answers({"sources": sources, "folders": [job.output_dir]}))
        yield from mount_findings(job.mounts, facts)
        yield from folder_findings("Results folder", job.output_dir, "EVAL_RESULTS_DIR", facts)

    def look_at_container(self) -> Iterator[Finding]:
        """In a folder that is made as the one for results will be."""
        job = self._job()
        there = next(path for path in (Path(job.output_dir), *Path(job.output_dir).parents) if path.exists())
        with tempfile.TemporaryDirectory(dir=there, prefix=".nemotron-doctor-") as folder:
            questions = {
                "folders": [folder],
                "endpoint": True,
                "urls": [hub_of(job.env)],
                "hub_items": list(hub_items(job.plan)),
            }
            plan = {"probe": questions, "model": job.plan["model"]}
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                code = self._executor().run(replace(job, plan=plan, runner=PROGRAM, output_dir=folder))
            if code:
                what = f"A container of {job.image} ends with {code}: {' '.join(said.getvalue().split())[-300:]}"
                yield fail(what, "the image must have python3, 3.6 or later", "container")
                return
            self.inside = parse_facts(said.getvalue().splitlines())
        yield ok(f"A container of {job.image} runs, with python {self.inside.python}")

    def look_at_inner_storage(self) -> Iterator[Finding]:
        (folder,) = self.inside.folders
        yield from folder_findings("Mounted folder", folder, "EVAL_RESULTS_DIR", self.inside)

    def look_at_endpoint(self) -> Iterator[Finding]:
        yield from endpoint_findings(self._job().plan["model"], self.inside, is_here=self.profile.network == "host")

    def look_at_hub(self) -> Iterator[Finding]:
        job = self._job()
        yield from hub_findings(hub_of(job.env), hub_items(job.plan), self.inside, is_offline=is_offline(job.env))

    def _executor(self) -> DockerExecutor:
        return DockerExecutor(self.profile, self.environ)

    def _job(self) -> Job:
        """Checks that need it do not run without."""
        assert self.job is not None
        return self.job
