"""What `enroot import` writes into an image, so that enroot and pyxis start ours as they start theirs."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nemotron.images.sqsh.stream import Extra

RC = """\
mkdir -p {folder} 2>/dev/null
cd {folder} || exit 1
unset OLDPWD

if [ -s /etc/rc.local ]; then
    . /etc/rc.local
fi

if [ "$#" -gt 0 ]; then
    exec {with_arguments}
else
    exec {alone}
fi
"""
RC_LOCAL = "# Read by /etc/rc before it starts the image's program.\n"


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """How the image wants to be started."""

    env: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    working_dir: str = "/"
    volumes: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "ImageConfig":
        """From the JSON that a manifest names as its config; most fields may be null or absent."""
        said = content.get("config") or {}
        return cls(
            env=tuple(said.get("Env") or ()),
            entrypoint=tuple(said.get("Entrypoint") or ()),
            cmd=tuple(said.get("Cmd") or ()),
            working_dir=said.get("WorkingDir") or "/",
            volumes=tuple(said.get("Volumes") or ()),
            labels=said.get("Labels") or {},
        )


def enroot_files(config: ImageConfig, source: str) -> tuple[Extra, ...]:
    return (
        Extra("etc/environment", environment(config).encode()),
        Extra("etc/fstab", fstab(config).encode()),
        Extra("etc/rc", rc(config, source).encode(), 0o755),
        Extra("etc/rc.local", RC_LOCAL.encode(), 0o755),
    )


def environment(config: ImageConfig) -> str:
    """A line each; a value of several lines has no place in this format."""
    return "".join(f"{line}\n" for line in config.env if "\n" not in line)


def fstab(config: ImageConfig) -> str:
    """A volume that the machine does not have is left as the image has it."""
    paths = [re.sub(r"[\s\\]", lambda match: f"\\{ord(match[0]):03o}", volume) for volume in config.volumes]
    return "".join(f"{path} {path} none x-create=dir,bind,rw,nofail 0 0\n" for path in paths)


def rc(config: ImageConfig, source: str) -> str:
    comments = [source, *(f"{name} {value}" for name, value in sorted(config.labels.items()))]
    entrypoint = shlex.join(config.entrypoint)
    alone = shlex.join([*config.entrypoint, *config.cmd]) or "/bin/sh"
    return "".join(f"# {' '.join(comment.split())}\n" for comment in comments) + RC.format(
        folder=shlex.quote(config.working_dir),
        with_arguments=f'{entrypoint} "$@"'.strip(),
        alone=alone,
    )
