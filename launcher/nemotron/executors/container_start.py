"""`python3 -I container_start.py LIMIT RUNNER PLAN`, the first thing inside a container: reads the job's variables from
standard input, as one line of JSON, and becomes the runner.

So values are in no argument, no file and no definition of a container, and they win over the image's own. When
LIMIT seconds have passed (0: never), or standard input ends and the line said that this means stop, the runner gets
SIGTERM: whoever started the container may be killed, and still it does not run on alone.

Standard library only, Python 3.6 and later: it runs in images that this project does not build.
"""

import json
import os
import select
import signal
import sys
import time
from typing import Any, Dict, List, Optional

LOOK_SECONDS = 1.0
AGAIN_SECONDS = 30.0
"""A signal that comes before the runner listens is lost where it is the first process of its container."""
STOPPED = 75


def main(limit: float, command: List[str]) -> None:
    said = read_line()
    if said is None:
        sys.exit(STOPPED)
    os.environ.update(said["environ"])
    runner = os.getpid()
    if (limit or said["stops_at_end"]) and os.fork() == 0:
        keep_away_from_output()
        watch(runner, limit, said["stops_at_end"])
        os._exit(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.execv(sys.executable, [sys.executable] + command)


def read_line() -> Optional[Dict[str, Any]]:
    """Nothing where it ends before the line does. Not by sys.stdin, which would read on."""
    line = b""
    while not line.endswith(b"\n"):
        data = os.read(0, 1 << 16)
        if not data:
            return None
        line += data
    said: Dict[str, Any] = json.loads(line.decode("utf-8"))
    return said


def keep_away_from_output() -> None:
    """Whoever reads it would wait for us, too."""
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def watch(runner: int, limit: float, stops_at_end: bool) -> None:
    deadline = time.time() + limit if limit else float("inf")
    watched = [0] if stops_at_end else []
    while os.getppid() == runner and time.time() < deadline:
        ready = select.select(watched, [], [], max(0.0, min(LOOK_SECONDS, deadline - time.time())))[0]
        if ready and not os.read(0, 1 << 16):
            break
    while os.getppid() == runner:
        os.kill(runner, signal.SIGTERM)
        time.sleep(AGAIN_SECONDS)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
