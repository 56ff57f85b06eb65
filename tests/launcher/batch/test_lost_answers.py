"""The connection breaks while a job is submitted: it is never submitted twice, and never forgotten."""

from pathlib import Path

import pytest

from nemotron.errors import SubmitError
from nemotron.executors.ssh import SshExecutor
from nemotron.profiles import SlurmProfile
from nemotron.transport.base import TransportError
from nemotron.transport.here import Here

pytestmark = pytest.mark.timeout(600)


class Breaking(Here):
    """Loses the answer of sbatch, before or after the command ran."""

    def __init__(self, environ, *, ran: bool, is_back: bool = True) -> None:
        super().__init__(environ)
        self.ran, self.is_back, self.is_broken = ran, is_back, False

    def run(self, command, **options):
        if self.is_broken and not self.is_back:
            raise TransportError("me@login does not answer.")
        if "sbatch" not in command:
            return super().run(command, **options)
        self.is_broken, self.sbatch_seconds = True, options["timeout"]
        if self.ran:
            super().run(command, **options)
        raise TransportError("the connection to me@login broke.")


@pytest.fixture
def through(environ, monkeypatch):
    """Makes an executor whose connection breaks so."""

    def make(**so) -> SshExecutor:
        executor = SshExecutor(SlurmProfile(container_runtime="none", host="login"), environ)
        executor.pauses = (0.0, 0.0)
        session = Breaking(environ, **so)
        monkeypatch.setattr(executor, "session", lambda: session)
        return executor

    return make


def test_a_job_that_slurm_has_is_found_by_its_name(through, job, slurm):
    submission = through(ran=True).submit(job())
    assert slurm.job(int(submission.job_id))["name"] == submission.details["name"]
    assert len(slurm.calls("sbatch")) == 1 and Path(submission.details["folder"]).is_dir()


def test_a_job_that_slurm_never_got_is_said_to_be_none_and_leaves_nothing(through, job, slurm, environ):
    with pytest.raises(SubmitError, match=r"broke\. Slurm did not get the job: submit it again"):
        through(ran=False).submit(job())
    assert not slurm.jobs() and not list((Path(environ["HOME"]) / ".nemotron/jobs").iterdir())


def test_where_nobody_knows_the_user_learns_how_to_look_and_the_job_keeps_its_folder(through, job, slurm, environ):
    with pytest.raises(TransportError, match=r"is not known: `squeue --name=eval-base-en-"):
        through(ran=True, is_back=False).submit(job())
    assert slurm.jobs() and list((Path(environ["HOME"]) / ".nemotron/jobs").iterdir())


def test_sbatch_has_the_time_that_it_takes_at_a_full_cluster(through, job):
    """It tries again for two minutes; given up on before, it might submit a job that nobody knows of."""
    executor = through(ran=True)
    executor.submit(job())
    assert executor.session().sbatch_seconds > 120
