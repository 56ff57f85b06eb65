"""Containers of attached runs whose command was killed: they end by themselves, but nobody was left to remove them.

So each names its owner in a label, and the next attached run removes those that have ended without one.
"""

import json
import os
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from nemotron.processes import started

if TYPE_CHECKING:
    from docker import DockerClient

LABEL = "nemotron.attached"


def owner_label(folder: Path) -> dict[str, str]:
    """This process, and the folder that goes with the container."""
    pid = os.getpid()
    owner = {"host": socket.gethostname(), "pid": pid, "started": started(pid), "folder": str(folder)}
    return {LABEL: json.dumps(owner)}


def remove_orphans(client: "DockerClient") -> None:
    import docker

    for container in client.containers.list(all=True, filters={"label": LABEL, "status": "exited"}):
        owner = json.loads(container.labels[LABEL])
        if owner["host"] != socket.gethostname() or started(owner["pid"]) == owner["started"]:
            continue
        try:
            container.remove()
        except docker.errors.APIError:
            continue  # somebody else is at it
        shutil.rmtree(owner["folder"], ignore_errors=True)
