"""`python -m nemotron.supervise FOLDER COMMAND…`: run it to its end and write down how it ended.

The submitting command is gone by then, and the exit code of a process is only told to its parent.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from nemotron.files import write_bytes

EXIT_CODE = "exit_code"
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run_to_end(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """The child's exit code, or a shell's 128 + n when a signal ended it.

    It has a session of its own: a signal reaches it once, from here, and not from the terminal besides.
    """
    children: list[subprocess.Popen[bytes]] = []
    asked: list[int] = []

    def stop(number: int, _: object) -> None:
        asked.append(number)
        for child in children:
            child.send_signal(number)

    earlier = {number: signal.signal(number, stop) for number in STOPPING}
    try:
        children.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environ, start_new_session=True))
        for number in asked[:1]:  # it came before there was a child
            children[0].send_signal(number)
        code = children[0].wait()
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def main(folder: Path, command: list[str]) -> None:
    code = run_to_end(command, os.environ)
    write_bytes(folder / EXIT_CODE, f"{code}\n".encode())
    sys.exit(code)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
