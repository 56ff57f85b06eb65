"""A job -> the text of its batch script: typed directives, one command, and nothing that bash has to decide. Pure."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields

from nemotron.errors import UsageError
from nemotron.profiles import SlurmProfile
from nemotron.slurm.demand import in_words
from nemotron.slurm.folder import LOG

TIME_IS_UP = "USR2"
WARNING_SECONDS = 60
"""Between the signal and the time limit: for the runner to end its harness, and to write its summary."""
_KEY = re.compile(r"[a-z][a-z-]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Directives:
    """Options of sbatch under their own names; None is left to the cluster, and True has no value."""

    job_name: str
    output: str
    chdir: str
    account: str | None = None
    partition: str | None = None
    qos: str | None = None
    reservation: str | None = None
    constraint: str | None = None
    nodelist: str | None = None
    exclude: str | None = None
    dependency: str | None = None
    comment: str | None = None
    mail_user: str | None = None
    mail_type: str | None = None
    time: str | None = None
    nodes: int = 1
    ntasks: int = 1
    cpus_per_task: int | None = None
    mem: str | None = None
    gpus_per_node: int | None = None
    requeue: bool = False
    no_requeue: bool = False
    signal: str | None = None
    open_mode: str = "append"
    export: str = "NONE"
    additional: Mapping[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[str]:
        """`--key=value`, ready for a line of a script; a value with `#`, spaces or quotes is quoted."""
        own = {item.name.replace("_", "-"): getattr(self, item.name) for item in fields(self)[:-1]}
        for key, value in own.items():
            if value is True:
                yield f"--{key}"
            elif value not in (None, False, ""):
                yield f"--{key}={_quoted(key, str(value))}"
        for key, value in self.additional.items():
            yield f"--{key}={_quoted(key, value)}" if value else f"--{key}"


TYPED = {item.name.replace("_", "-") for item in fields(Directives)} - {"additional"}
BY_PROFILE = {"job-name": "the name of the run", "output": "the job's folder", "chdir": "the job's folder"}


def directives(profile: SlurmProfile, name: str, folder: str, comment: str, variables: Sequence[str]) -> Directives:
    """`variables` are all that the job gets of the environment that it is submitted from."""
    check_additional(profile.additional_parameters)
    return Directives(
        job_name=name,
        output=f"{folder}/{LOG}".replace("%", "%%"),
        chdir=folder,
        account=profile.account,
        partition=profile.partition,
        qos=profile.qos,
        reservation=profile.reservation,
        constraint=profile.constraint,
        nodelist=profile.nodelist,
        exclude=profile.exclude,
        dependency=profile.dependency,
        comment=profile.comment or comment,
        mail_user=profile.mail_user,
        mail_type=profile.mail_type,
        time=in_words(profile.time) if profile.time else None,
        cpus_per_task=profile.cpus_per_task,
        mem=f"{profile.mem}M" if profile.mem else None,
        gpus_per_node=profile.gpus_per_node or None,
        requeue=profile.requeue,
        no_requeue=not profile.requeue,
        signal=f"B:{TIME_IS_UP}@{warning(profile.time)}",
        export=",".join(variables) or "NONE",
        additional=profile.additional_parameters,
    )


def script(directives: Directives, command: Sequence[str]) -> str:
    """The command takes the place of the shell, so that it gets the signals that are meant for the batch step. Until it
    listens, the one that warns of the time limit must not end it."""
    lines = [f"#SBATCH {directive}" for directive in directives]
    return "\n".join(["#!/bin/bash", *lines, "", f"trap '' {TIME_IS_UP}", f"exec {shlex.join(command)}", ""])


def check_additional(parameters: Mapping[str, str]) -> None:
    for key in parameters:
        if not _KEY.fullmatch(key):
            raise UsageError(
                f"additional_parameters: {key!r} is no option of sbatch: write its long name without the dashes, "
                "such as wckey."
            )
        if key in TYPED:
            instead = BY_PROFILE.get(key)
            own = f"it is {instead}" if instead else f"the profile has {_profile_key(key)!r} for it"
            raise UsageError(f"additional_parameters: leave {key!r} out, {own}.")


def _profile_key(key: str) -> str:
    return {"no-requeue": "requeue", "signal": "time", "nodes": "cpus_per_task", "ntasks": "cpus_per_task"}.get(
        key, key.replace("-", "_")
    )


def _quoted(key: str, value: str) -> str:
    if _CONTROL.search(value):
        raise UsageError(f"{key.replace('-', '_')} {value!r} has a line break or another control character: remove it.")
    return shlex.quote(value.replace("\\", "\\\\"))  # an escape to Slurm's reader, in single quotes too


def warning(time: int | None) -> int:
    """Seconds before the time limit at which the step is told. Short jobs give a quarter of their time. Slurm looks
    every 30 s, so the signal may come as much earlier."""
    return min(WARNING_SECONDS, max(1, (time or 4 * WARNING_SECONDS) // 4))
