"""A profile of this machine's environment: the interpreter, the harness, and what it reaches."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nemotron.doctor.containers import harness_beside
from nemotron.doctor.endpoint import endpoint_findings
from nemotron.doctor.examination import Check
from nemotron.doctor.facts import PROGRAM, Facts, parse_facts
from nemotron.doctor.finding import Finding, fail, ok
from nemotron.doctor.hub import hub_findings, hub_items, hub_of
from nemotron.doctor.storage import folder_findings
from nemotron.errors import SubmitError
from nemotron.hub import is_offline
from nemotron.job import Job
from nemotron.profiles import LocalProfile
from nemotron.secrets import values_of, without_secrets

PROBE_SECONDS = 120


@dataclass(slots=True)
class LocalPatient:
    profile: LocalProfile
    job: Job | None
    """None where the suite cannot be resolved."""
    environ: Mapping[str, str] = field(repr=False)
    facts: Facts = field(init=False)

    def checks(self) -> list[Check]:
        return [
            Check("python", self.look_at_python),
            Check("harness", self.look_at_harness, ("python",)),
            Check("storage", self.look_at_storage, ("python", "suite")),
            Check("endpoint", self.look_at_endpoint, ("python", "suite")),
            Check("hub", self.look_at_hub, ("python", "suite")),
        ]

    def look_at_python(self) -> Iterator[Finding]:
        python = self._python()
        if shutil.which(python) is None:
            yield fail(f"{python} is no interpreter", "correct python in the profile", "python")
            return
        self.facts = self._asked(python)
        yield ok(f"{python} is Python {self.facts.python}")

    def look_at_harness(self) -> Iterator[Finding]:
        command = harness_beside(self._python())
        if found := self.facts.commands[command]:
            yield ok(f"The harness is {found}")
        else:
            action = "set python in the profile to that of the environment that has the harness"
            yield fail(f"There is no {command}", action, "harness")

    def look_at_storage(self) -> Iterator[Finding]:
        assert self.job is not None
        yield from folder_findings("Results folder", self.job.output_dir, "EVAL_RESULTS_DIR", self.facts)

    def look_at_endpoint(self) -> Iterator[Finding]:
        assert self.job is not None
        yield from endpoint_findings(self.job.plan["model"], self.facts, is_here=True)

    def look_at_hub(self) -> Iterator[Finding]:
        assert self.job is not None
        environ = {**self.environ, **self.job.env}
        items = hub_items(self.job.plan)
        yield from hub_findings(hub_of(environ), items, self.facts, is_offline=is_offline(environ))

    def _python(self) -> str:
        given = self.profile.python
        return sys.executable if given is None else str(Path(given).expanduser())

    def _asked(self, python: str) -> Facts:
        questions: dict[str, object] = {"commands": [harness_beside(python)]}
        environ = without_secrets(self.environ)
        if self.job is not None:
            environ |= {**self.job.env, **values_of(self.job.secrets, self.environ)}
            questions |= {"folders": [self.job.output_dir], "endpoint": self.job.plan["model"]}
            questions |= {"urls": [hub_of(environ)], "hub_items": list(hub_items(self.job.plan))}
        command = [python, "-I", "-", json.dumps(questions)]
        done = subprocess.run(command, input=PROGRAM, capture_output=True, env=environ, timeout=PROBE_SECONDS)
        if done.returncode:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
            raise SubmitError(f"{python} does not run the probe ({lines[-1]}): it must be Python 3.6 or later.")
        return parse_facts(done.stdout.decode("utf-8", "replace").splitlines())
