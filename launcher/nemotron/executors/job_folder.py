"""A job's folder on the cluster: everything that its batch step needs, written before Slurm hears of it."""

import io
import json
import secrets as randomness
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nemotron.errors import SubmitError
from nemotron.executors.cluster_survey import Survey
from nemotron.executors.sbatch import warning
from nemotron.executors.sealed import new_key, seal
from nemotron.executors.shipped import START, batch_step, source
from nemotron.images.reference import Reference, parse_image
from nemotron.job import Job, Mount
from nemotron.profiles import SlurmProfile
from nemotron.runtimes import Commands, Container, commands
from nemotron.slurm.folder import BATCH, PLAN, RUNNER, SCRIPT, SECRETS, STEP
from nemotron.transport.base import Session

ENTRY = "entry.sh"
RUNS_ITS_ARGUMENTS = b'exec "$@"\n'
IN_CONTAINERS = {"HOME": "/tmp"}
"""Unless the user says otherwise: the home folder of the account is not there."""
UNPACK = 'umask 077 && mkdir -p "$1" && exec tar -xf - -C "$1"'


@dataclass(frozen=True, slots=True)
class JobFolder:
    path: str
    """Ends in the job's name, which no other one has."""
    user: str
    """Whose job it is, there."""
    files: Mapping[str, bytes]
    sealed: bytes
    """Empty where there are no secrets."""
    key: str
    written: float
    """By the cluster's clock: storage is cleaned by age."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def script(self) -> str:
        return f"{self.path}/{SCRIPT}"

    def write(self, session: Session) -> None:
        """All files in one go, and the secrets by themselves: their file is never readable by others."""
        try:
            done = session.run(["sh", "-c", UNPACK, "sh", self.path], stdin=_archive(self.files, self.written))
            if done.code:
                raise SubmitError(f"{self.path} cannot be written on {session.name}: {done.said}")
            if self.sealed:
                session.write(f"{self.path}/{SECRETS}", self.sealed, mode=0o600)
        except OSError as error:
            raise SubmitError(f"{self.path} cannot be written on {session.name}: {error.strerror}") from None


def unique_name(job: Job) -> str:
    return f"{job.name}-{randomness.token_hex(4)}"


def image_of(job: Job, profile: SlurmProfile) -> Reference | Path | None:
    return parse_image(job.image, Path.cwd()) if job.image and profile.runs_images else None


def contained(
    job: Job,
    profile: SlurmProfile,
    name: str,
    folder: str,
    *,
    image: Reference | Path | None,
    owner: tuple[int, int] = (1, 1),
) -> Commands:
    """How the runner is started on a node."""
    mounts = (Mount(job.output_dir, job.output_dir), Mount(folder, folder, is_read_only=True), *job.mounts)
    container = Container(
        name=name,
        image=image,
        command=(
            "python3" if profile.runs_images else profile.python,
            "-I",
            f"{folder}/{START}",
            "0",
            f"{folder}/{RUNNER}",
            f"{folder}/{PLAN}",
        ),
        mounts=mounts,
        cpus=profile.cpus_per_task,
        owner=owner,
        entry=f"{folder}/{ENTRY}",
    )
    return commands(profile.container_runtime, container)


def job_folder(
    job: Job, profile: SlurmProfile, path: str, script: str, started: Commands, values: Mapping[str, str], found: Survey
) -> JobFolder:
    """`values` are those of its secrets."""
    step = {
        "prepare": started.prepare,
        "run": started.run,
        "clean_up": started.clean_up,
        "environ": {**(IN_CONTAINERS if profile.runs_images else {}), **job.env},
        "first_in_path": "" if profile.runs_images or "/" not in profile.python else str(Path(profile.python).parent),
        "output_dir": job.output_dir,
        "has_secrets": bool(values),
        "time_limit": profile.time,
        "warning": warning(profile.time),
        "max_requeues": profile.max_requeues if profile.requeue else 0,
    }
    key = new_key()
    files = {
        SCRIPT: script.encode(),
        PLAN: _json(job.plan),
        RUNNER: job.runner,
        STEP: _json(step),
        BATCH: batch_step(),
        START: source(START),
        ENTRY: RUNS_ITS_ARGUMENTS,
    }
    sealed = seal(dict(values), key) if values else b""
    return JobFolder(path, found.user, files, sealed, key if values else "", found.now)


def _json(content: Mapping[str, object]) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def _archive(files: Mapping[str, bytes], written: float) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(content), 0o600, written
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
