"""What a profile of env.toml may say, a class a backend."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from nemotron.errors import ProfileError, nearest
from nemotron.job import Mount, Resources
from nemotron.profile_errors import problems

MIB = {"": 1, "m": 1, "mi": 1, "mb": 1, "mib": 1, "g": 1024, "gi": 1024, "gb": 1024, "gib": 1024}
LOOPBACK = {"localhost", "127.0.0.1", "::1"}

Runtime = Literal["pyxis", "enroot", "apptainer", "podman", "docker", "none"]
"""What starts a container on a node."""
READS_SQUASH: tuple[Runtime, ...] = ("pyxis", "enroot", "apptainer")
"""They also run an image that is a .sqsh file."""


def _mib(value: object) -> object:
    """`8192` and `"8192M"` are MiB, `"8G"` is 8192."""
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", value.strip().lower()) if isinstance(value, str) else None
    if match is None and isinstance(value, int):
        return value
    if match is None or match[2] not in MIB:
        raise ValueError("memory is written as MiB, or with a unit, such as 32G")
    return int(match[1]) * MIB[match[2]]


def _seconds(value: object) -> object:
    """Slurm's spellings: `30` minutes, `45:00`, `04:00:00`, `2-00:00:00`."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", str(value).strip())
    if match is None:
        raise ValueError("a time is written as minutes, HH:MM:SS or D-HH:MM:SS")
    days, *parts = match.groups()
    numbers = [int(part) for part in parts if part is not None]
    if days is None and len(numbers) < 3:
        numbers = [0, *numbers]
    hours, minutes, seconds = (*numbers, 0, 0)[:3]
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def _mount(value: object) -> object:
    """`/data`, `/data:/mnt`, `/data:/mnt:ro`."""
    if not isinstance(value, str):
        return value
    source, target, flags, *more = *value.split(":"), "", ""
    is_absolute = source.startswith("/") and (target or source).startswith("/")
    if not is_absolute or any(more) or len(more) > 2 or flags not in ("", "ro", "rw"):
        raise ValueError(f"{value!r} is not a mount: write /source:/target or /source:/target:ro")
    return Mount(source, target or source, flags == "ro")


def _absolute(value: object) -> object:
    if isinstance(value, str) and not value.startswith("/"):
        raise ValueError("a path there is absolute: begin it with /")
    return value


Mebibytes = Annotated[int, BeforeValidator(_mib), Field(gt=0)]
Seconds = Annotated[int, BeforeValidator(_seconds), Field(gt=0)]
MountPath = Annotated[Mount, BeforeValidator(_mount)]
Text = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int | float) else value)]
AbsolutePath = Annotated[str, BeforeValidator(_absolute)]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class _Profile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    env_vars: dict[VariableName, Text] = Field(default={}, repr=False)
    """Variables for the job, also seen when the suite is resolved; empty ones count as unset."""
    container_image: str | None = None
    """For other steps that share the profile; an evaluation runs in the image its suite selects."""

    @property
    def is_remote(self) -> bool:
        """Whether a path here means nothing there."""
        return True

    @property
    def runs_images(self) -> bool:
        return True

    @property
    def backend(self) -> tuple[str | int | None, ...]:
        """What tells one backend from another: all jobs of one can be asked about together."""
        return (self.model_dump_json(exclude={"env_vars"}),)

    @property
    def platform_secrets(self) -> Mapping[str, str]:
        """Variable name -> secret that the platform keeps."""
        return {}

    @property
    def forwarded_secrets(self) -> tuple[str, ...]:
        """Names whose values, where set, go from the submitting environment to the job."""
        return ()

    @property
    def allows_plaintext_secrets(self) -> bool:
        """Whether values of secrets may travel with the job; on this machine and in Slurm they go by environment."""
        return True

    @property
    def resources(self) -> Resources:
        return Resources()

    @property
    def job_mounts(self) -> tuple[Mount, ...]:
        return ()


class _Forwarding(_Profile):
    secret_vars: tuple[VariableName, ...] = ("HF_TOKEN",)
    """Names of further variables that the job gets from the submitting environment, where they are set there."""

    @property
    def forwarded_secrets(self) -> tuple[str, ...]:
        return self.secret_vars


class LocalProfile(_Forwarding):
    """A child process on this machine."""

    executor: Literal["local"] = "local"
    python: str | None = None
    """Interpreter of the environment that has the harness; its folder comes first in PATH. Default: this one."""

    @property
    def is_remote(self) -> bool:
        return False

    @property
    def backend(self) -> tuple[str | int | None, ...]:
        return (self.executor,)

    @property
    def runs_images(self) -> bool:
        return False


class DockerProfile(_Forwarding):
    """A container of the local engine; podman's socket works too."""

    executor: Literal["docker"] = "docker"
    docker_host: str | None = None
    """`unix:///run/user/1000/podman/podman.sock`; default: what the docker command uses."""
    network: str = "host"
    """`host` reaches an endpoint on this machine; with another network a loopback URL is rewritten."""
    mounts: tuple[MountPath, ...] = ()
    cpus: float | None = Field(default=None, gt=0)
    memory: Mebibytes | None = None
    shared_memory: Mebibytes | None = None
    time: Seconds | None = None

    @property
    def is_remote(self) -> bool:
        return False

    @property
    def backend(self) -> tuple[str | int | None, ...]:
        return self.executor, self.docker_host

    @property
    def resources(self) -> Resources:
        return Resources(self.cpus, self.memory, self.shared_memory, 0, self.time)

    @property
    def job_mounts(self) -> tuple[Mount, ...]:
        return self.mounts


class SlurmProfile(_Forwarding):
    """A job of a Slurm cluster, submitted on its login node or through SSH."""

    executor: Literal["slurm"] = "slurm"
    tunnel: Literal["local", "ssh"] | None = None
    """`local` submits on this machine, `ssh` through `host`. Default: `ssh` where there is a host that is not this
    machine, else `local`."""
    host: str | None = None
    """Login node, by its name in ssh's config or in the network."""
    user: str | None = None
    port: int | None = None
    identity: str | None = None
    remote_job_dir: AbsolutePath | None = None
    """On storage that login and compute nodes share; default: .nemotron/jobs of the home folder there."""
    account: str | None = None
    partition: str | None = None
    qos: str | None = None
    reservation: str | None = None
    constraint: str | None = None
    exclude: str | None = None
    nodelist: str | None = None
    dependency: str | None = None
    comment: str | None = None
    mail_user: str | None = None
    mail_type: str | None = None
    time: Seconds | None = None
    cpus_per_task: int | None = Field(default=None, gt=0)
    mem: Mebibytes | None = None
    gpus_per_node: int = Field(default=0, ge=0)
    requeue: bool = True
    max_requeues: int = Field(default=3, ge=0)
    """How often a job goes on by itself after its time limit, a preemption or a failed node."""
    container_runtime: Runtime = "pyxis"
    python: str = "python3"
    """Interpreter on the nodes, 3.6 or later, for the batch step; with container_runtime `none`, of the environment
    that has the harness, whose folder then comes first in PATH."""
    mounts: tuple[MountPath, ...] = ()
    image_cache_dir: AbsolutePath | None = None
    """Folder of the cluster for .sqsh images, where each is made once for all jobs; without it the runtime reads the
    registry."""
    additional_parameters: dict[str, Text] = {}
    """Further #SBATCH options, as they are."""

    @property
    def backend(self) -> tuple[str | int | None, ...]:
        return self.executor, self.is_here, *(() if self.is_here else (self.host, self.user, self.port, self.identity))

    @property
    def is_here(self) -> bool:
        if self.tunnel is not None:
            return self.tunnel == "local"
        return self.host is None or self.host in LOOPBACK

    @property
    def runs_images(self) -> bool:
        return self.container_runtime != "none"

    @property
    def uses_squash(self) -> bool:
        return self.image_cache_dir is not None and self.container_runtime in READS_SQUASH

    @property
    def resources(self) -> Resources:
        return Resources(self.cpus_per_task, self.mem, None, self.gpus_per_node, self.time)

    @property
    def job_mounts(self) -> tuple[Mount, ...]:
        return self.mounts


class LeptonMount(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    path: str
    """Inside the volume."""
    source: str = Field(alias="from")
    mount_path: str


class _Cloud(_Profile):
    secret_vars: dict[VariableName, str] = {}
    """Variable name -> name of the secret that the platform keeps."""
    allow_plaintext_secrets: bool = False
    """Lets secrets without a platform secret travel in the job's definition, where others can read them."""

    @property
    def platform_secrets(self) -> Mapping[str, str]:
        return self.secret_vars

    @property
    def allows_plaintext_secrets(self) -> bool:
        return self.allow_plaintext_secrets


class LeptonProfile(_Cloud):
    """A job of DGX Cloud Lepton; LEPTON_WORKSPACE_ID, _TOKEN and _URL name the workspace."""

    executor: Literal["lepton"] = "lepton"
    resource_shape: str
    node_group: str | None = None
    nodes: tuple[str, ...] = ()
    shared_memory_size: Mebibytes = 8192
    """No cpu.* shape has the 64 GiB that GPU jobs ask for."""
    mounts: tuple[LeptonMount, ...] = ()
    image_pull_secrets: tuple[str, ...] = ()
    ttl_seconds_after_finished: int | None = None
    visibility: Literal["public", "private"] = "private"
    priority_class: str | None = None
    can_be_preempted: bool | None = None
    can_preempt: bool | None = None
    reservation_id: str | None = None

    @property
    def resources(self) -> Resources:
        return Resources(shared_memory_mib=self.shared_memory_size)


class DGXCloudPVC(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    path: str


class DGXCloudProfile(_Cloud):
    """A training workload of DGX Cloud (Run:ai), without GPUs."""

    executor: Literal["dgxcloud"] = "dgxcloud"
    base_url: str
    project: str
    client_id: str | None = None
    client_secret_name: VariableName = "DGXC_CLIENT_SECRET"
    """NAME of the variable with the application's secret."""
    pvcs: tuple[DGXCloudPVC, ...] = ()
    cpus: float = Field(default=8, gt=0)
    memory: Mebibytes = 32768

    @property
    def resources(self) -> Resources:
        return Resources(self.cpus, self.memory)


Profile = Annotated[
    LocalProfile | DockerProfile | SlurmProfile | LeptonProfile | DGXCloudProfile, Field(discriminator="executor")
]
BACKENDS: dict[str, type[_Profile]] = {
    model.model_fields["executor"].default: model for model in get_args(get_args(Profile)[0])
}


@dataclass(frozen=True, slots=True)
class NamedProfile:
    """A table of env.toml with everything it extends, before the settings of a run are laid over it."""

    name: str
    place: str
    """`[name] of path`, for messages."""
    data: Mapping[str, Any] = field(repr=False)

    @property
    def env_vars(self) -> dict[str, str]:
        """Those that are not empty."""
        return {name: str(value) for name, value in self.data.get("env_vars", {}).items() if str(value)}

    def with_settings(self, settings: Mapping[str, Any]) -> Profile:
        return parse_profile({**self.data, **settings}, self.place)


LOCAL = NamedProfile("local", "this machine", {"executor": "local"})


def parse_profile(data: Mapping[str, Any], place: str) -> Profile:
    """`place` is what messages call it: `[slurm_eval_direct] of /home/me/env.toml`."""
    executor = data.get("executor")
    if executor not in BACKENDS:
        guess = nearest(str(executor), BACKENDS)
        raise ProfileError(f"{place}: executor {executor!r} is not one of {', '.join(BACKENDS)}.{guess}")
    try:
        return cast(Profile, BACKENDS[executor].model_validate(data))
    except ValidationError as error:
        found = problems(error.errors(), BACKENDS[executor].model_fields)
        raise ProfileError(f"{place}: {'; '.join(found)}") from None
