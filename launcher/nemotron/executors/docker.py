"""A container of the local engine, through Docker's API; podman's socket speaks it too.

What the engine keeps and shows in `inspect`: image, command, mounts, and the variables that are no secrets. Values of
secrets go through the container's standard input when it starts, so they are in no argument, no file and no `inspect`;
root of this machine can still read them from the process, as from any.
"""

import json
import os
import secrets as randomness
import shutil
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit, urlunsplit

from nemotron.errors import SubmitError, UsageError
from nemotron.executors.base import PLAN, RUNNER, Pace, read_here, stage
from nemotron.executors.orphans import owner_label, remove_orphans
from nemotron.executors.shipped import START, source
from nemotron.files import write_bytes
from nemotron.home import home
from nemotron.images.credentials import Keyring
from nemotron.images.reference import parse, spelled
from nemotron.job import Job, JobState, Mount, Phase, Submission
from nemotron.profiles import DockerProfile
from nemotron.secrets import values_of
from nemotron.supervise import EXIT_CODE, STOPPING

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

STAGED = "/run/nemotron"
"""Where plan and runner are in the container."""
GRACE_SECONDS = 60
"""For the runner to write its summary when it is stopped."""
ANSWER_SECONDS = 600
"""An engine is silent for long while it unpacks an image or waits for another's lock."""
DEFAULT_ADDRESS = "unix:///var/run/docker.sock"
LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")
LABEL = "nemotron.job"


@dataclass(frozen=True, slots=True)
class Engine:
    """What matters of the one that answers."""

    is_podman: bool = False
    is_rootless: bool = False

    @classmethod
    def of(cls, version: Mapping[str, Any], info: Mapping[str, Any]) -> "Engine":
        names = [str(part.get("Name", "")) for part in version.get("Components") or []]
        is_rootless = any("rootless" in str(option) for option in info.get("SecurityOptions") or [])
        return cls(any("podman" in name.lower() for name in names), is_rootless)

    @property
    def host_name(self) -> str:
        """How this machine is called from inside a container that has a network of its own."""
        return "host.containers.internal" if self.is_podman else "host.docker.internal"


class DockerExecutor:
    pace = Pace(first=1.0, longest=5.0)

    def __init__(self, profile: DockerProfile, environ: Mapping[str, str]) -> None:
        self._profile, self._environ = profile, environ

    def run(self, job: Job) -> int:
        folder = self._folder()
        with self._client() as client:
            remove_orphans(client)
            container = self._create(client, job, folder, owner_label(folder))
            try:
                with _forwarding_signals(container):
                    with self._started(container, job, client, stops_at_end=True):
                        _copy_logs(container)
                    return int(container.wait()["StatusCode"])
            finally:
                _remove(container, folder)

    def engine(self) -> str:
        """What answers, by name and version."""
        with self._client() as client:
            version = client.version()
            name = "podman" if Engine.of(version, {}).is_podman else "docker"
            return f"{name} {version.get('Version', '')}".strip()

    def submit(self, job: Job) -> Submission:
        folder = self._folder()
        with self._client() as client:
            container = self._create(client, job, folder, {})
            try:
                with self._started(container, job, client, stops_at_end=False):
                    pass
            except BaseException:
                _remove(container, folder)
                raise
            return Submission("docker", str(container.id), {"name": str(container.name), "folder": str(folder)})

    def states(self, submissions: Sequence[Submission]) -> list[JobState]:
        return [self.state(submission) for submission in submissions]

    def state(self, submission: Submission) -> JobState:
        record = Path(submission.details["folder"]) / EXIT_CODE
        if record.exists():
            return JobState(Phase.STOPPED, int(record.read_text(encoding="utf-8")), "cancelled, its container removed")
        with self._client() as client:
            container = _find(client, submission)
            if container is None:
                return JobState(Phase.UNKNOWN, reason="its container was removed; harness.log is with the results")
            return state_of(container.attrs["State"])

    def logs(self, submission: Submission, follow: bool) -> Iterator[str]:
        with self._client() as client:
            container = _find(client, submission)
            if container is None:
                raise SubmitError(
                    f"The container {submission.details['name']} is gone: see harness.log in the results."
                )
            with closing(container.logs(stream=True, follow=follow)) as chunks:
                yield from _lines(chunks)

    def read(self, paths: Sequence[str]) -> dict[str, str]:
        return read_here(paths)

    def cancel(self, submissions: Sequence[Submission]) -> None:
        for submission in submissions:
            self._cancel(submission)

    def _cancel(self, submission: Submission) -> None:
        folder = Path(submission.details["folder"])
        with self._client() as client:
            container = _find(client, submission)
            if container is None or state_of(container.attrs["State"]).phase.is_final:
                return
            container.stop(timeout=GRACE_SECONDS)
            code = int(container.wait()["StatusCode"])
            _remove(container, folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(folder / EXIT_CODE, f"{code}\n".encode())

    @contextmanager
    def _client(self) -> Iterator["DockerClient"]:
        """Whatever the engine says against it becomes one line."""
        import docker
        import requests

        client = _connect(self._profile.docker_host or self._environ.get("DOCKER_HOST") or DEFAULT_ADDRESS)
        try:
            yield client
        except docker.errors.APIError as error:
            raise SubmitError(f"The container engine refuses: {_one_line(error.explanation or error)}.") from None
        except requests.exceptions.RequestException as error:
            raise SubmitError(f"The container engine gave no answer ({_one_line(error)}): see its log.") from None
        finally:
            client.close()

    def _create(self, client: "DockerClient", job: Job, folder: Path, labels: Mapping[str, str]) -> "Container":
        if job.image is None:
            raise UsageError("A container needs an image: set EVAL_HARNESS_IMAGE, or harness_image=REGISTRY/NAME:TAG.")
        check_mounts(job, self._environ)
        image = self._pull(client, job.image)
        engine = Engine.of(client.version(), client.info())
        Path(job.output_dir).mkdir(parents=True, exist_ok=True)
        staged = Job(**{**_fields(job), "plan": reachable_plan(job.plan, self._profile.network, engine)})
        stage(staged, folder)
        write_bytes(folder / START, source(START))
        name = f"{job.name}-{randomness.token_hex(3)}"
        arguments = container_arguments(job, self._profile.network, engine, (os.getuid(), os.getgid()), folder)
        arguments["labels"] |= labels
        try:
            container: Container = client.containers.create(image, name=name, **arguments)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return container

    def _pull(self, client: "DockerClient", image: str) -> str:
        """Only when it is not here: what has a digest cannot have changed."""
        import docker

        reference = parse(image)
        name = spelled(reference, "docker")
        try:
            client.images.get(name)
        except docker.errors.ImageNotFound:
            credential = Keyring.load(self._environ).credential_for(reference)
            login = {"username": credential.username, "password": credential.password} if credential else None
            repository = f"{reference.registry}/{reference.repository}"
            client.images.pull(repository, tag=reference.digest or reference.tag, auth_config=login)
        return name

    @contextmanager
    def _started(
        self, container: "Container", job: Job, client: "DockerClient", *, stops_at_end: bool
    ) -> Iterator[None]:
        """Within, its standard input is open: where its end is to stop the job, this process may be killed in there."""
        engine = Engine.of(client.version(), client.info())
        values = values_of(job.secrets, self._environ)
        variable = job.plan["model"]["endpoint_url_variable"]
        if variable in values:
            values[variable] = reachable(values[variable], self._profile.network, engine)
        attached = cast(Any, container.attach_socket(params={"stdin": 1, "stream": 1}))
        with attached, attached._sock as stdin:  # the SDK hands out a reader, whose socket also writes
            container.start()
            stdin.sendall(json.dumps({"environ": values, "stops_at_end": stops_at_end}).encode() + b"\n")
            yield

    def _folder(self) -> Path:
        now = datetime.now(UTC)
        return home(self._environ) / "docker" / f"{now:%Y%m%d-%H%M%S}-{randomness.token_hex(2)}"


def container_arguments(job: Job, network: str, engine: Engine, owner: tuple[int, int], folder: Path) -> dict[str, Any]:
    """What the engine is asked for. Only named folders are mounted, never the home folder: packages and settings in it
    would shadow the image's."""
    resources = job.resources
    mounts = [Mount(job.output_dir, job.output_dir), Mount(str(folder), STAGED, is_read_only=True), *job.mounts]
    arguments = {
        "entrypoint": ["python3", "-I", f"{STAGED}/{START}"],
        "command": [str(resources.time_limit_seconds or 0), f"{STAGED}/{RUNNER}", f"{STAGED}/{PLAN}"],
        "environment": {"HOME": "/tmp", "PYTHONNOUSERSITE": "1", **job.env},
        "labels": {LABEL: job.name},
        "volumes": [f"{mount.source}:{mount.target}:{'ro' if mount.is_read_only else 'rw'}" for mount in mounts],
        "network_mode": network,
        "stdin_open": True,
        "nano_cpus": int(resources.cpus * 1e9) if resources.cpus else None,
        "mem_limit": f"{resources.memory_mib}m" if resources.memory_mib else None,
        "shm_size": f"{resources.shared_memory_mib}m" if resources.shared_memory_mib else None,
        **_identity(engine, owner),
    }
    if network != "host" and not engine.is_podman:
        arguments["extra_hosts"] = {engine.host_name: "host-gateway"}
    return {name: value for name, value in arguments.items() if value is not None}


def check_mounts(job: Job, environ: Mapping[str, str]) -> None:
    own = Path(environ.get("HOME", "/root"))
    for mount in job.mounts:
        if own.is_relative_to(mount.source):
            raise UsageError(
                f"mounts: {mount.source} brings your home folder into the container, where its packages and settings "
                "would shadow the image's: mount the folder that the job needs."
            )
    if own.is_relative_to(job.output_dir):
        raise UsageError(f"output_dir {job.output_dir} holds your home folder: choose a folder of its own.")


def reachable(url: str, network: str, engine: Engine) -> str:
    """The URL as seen from a container: with a network of its own, loopback is the container."""
    parts = urlsplit(url)
    if network == "host" or parts.hostname not in LOOPBACK:
        return url
    userinfo, at, _ = parts.netloc.rpartition("@")
    port = f":{parts.port}" if parts.port else ""
    return urlunsplit(parts._replace(netloc=f"{userinfo}{at}{engine.host_name}{port}"))


def reachable_plan(plan: Mapping[str, Any], network: str, engine: Engine) -> dict[str, Any]:
    model = dict(plan["model"])
    if model["endpoint_url"]:
        model["endpoint_url"] = reachable(model["endpoint_url"], network, engine)
    return {**plan, "model": model}


def state_of(state: Mapping[str, Any]) -> JobState:
    """From the engine's own words."""
    match state.get("Status"):
        case "created" | "configured" | "initialized":
            return JobState(Phase.QUEUED)
        case "running" | "paused" | "restarting" | "stopping":
            return JobState(Phase.RUNNING)
        case "exited" | "dead" | "stopped" if state.get("OOMKilled"):
            return JobState(Phase.FAILED, int(state["ExitCode"]), "out of memory: raise memory in the profile")
        case "exited" | "dead" | "stopped":
            return JobState.of_exit(int(state["ExitCode"]))
        case other:
            return JobState(Phase.UNKNOWN, reason=f"the engine calls it {other!r}")


def _identity(engine: Engine, owner: tuple[int, int]) -> dict[str, str]:
    """Results belong to whoever submits: without root, engines map users, each in its own way."""
    if engine.is_rootless and not engine.is_podman:
        return {"user": "0:0"}
    user = {"user": f"{owner[0]}:{owner[1]}"}
    return user | {"userns_mode": "keep-id"} if engine.is_rootless else user


def _fields(job: Job) -> dict[str, Any]:
    return {name: getattr(job, name) for name in job.__dataclass_fields__}


@contextmanager
def _forwarding_signals(container: "Container") -> Iterator[None]:
    """What stops this process lets the runner write its summary; its exit code is waited for."""

    def stop(number: int, _: object) -> None:
        container.kill(signal=signal.Signals(number).name)

    earlier = {number: signal.signal(number, stop) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _copy_logs(container: "Container") -> None:
    with closing(container.logs(stream=True, follow=True)) as chunks:
        for chunk in chunks:
            sys.stdout.write(chunk.decode("utf-8", "replace"))
            sys.stdout.flush()


def _lines(chunks: Iterator[bytes]) -> Iterator[str]:
    pending = b""
    for chunk in chunks:
        *lines, pending = (pending + chunk).split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in lines)
    if pending:
        yield pending.decode("utf-8", "replace")


def _connect(address: str) -> "DockerClient":
    """A socket is tried before the SDK does, which leaves one open when nobody answers."""
    import docker

    try:
        if address.startswith("unix://"):
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(address.removeprefix("unix://"))
        return docker.DockerClient(address, version="auto", timeout=ANSWER_SECONDS)
    except (docker.errors.DockerException, OSError) as error:
        raise SubmitError(
            f"No container engine answers at {address} ({_one_line(error)}): start it, or name podman's socket with "
            "docker_host in the profile (`podman system service` opens one)."
        ) from None


def _find(client: "DockerClient", submission: Submission) -> "Container | None":
    import docker

    try:
        return client.containers.get(submission.job_id)
    except docker.errors.NotFound:
        return None


def _remove(container: "Container", folder: Path) -> None:
    container.remove(force=True)
    shutil.rmtree(folder, ignore_errors=True)


def _one_line(problem: object) -> str:
    return " ".join(str(problem).split())[:300].rstrip(".")
