"""`python -m nemotron.executors.supervise FOLDER COMMAND…`: run it to its end and write down how it ended.

The submitting command is gone by then, and the exit code of a process is only told to its parent.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from nemotron.files import write_bytes

EXIT_CODE = "exit_code"
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run_to_end(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """In a session of its own, so that it gets one signal from here and none from the terminal besides.

    Whatever asks us to stop reaches it as SIGTERM, which the runner answers with a summary. A shell's 128 + n when a
    signal ended it.
    """
    children: list[subprocess.Popen[bytes]] = []
    asked = threading.Event()

    def stop(*_: object) -> None:
        asked.set()
        for child in children:
            child.terminate()

    earlier = {number: signal.signal(number, stop) for number in STOPPING}
    try:
        children.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environ, start_new_session=True))
        if asked.is_set():
            children[0].terminate()
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
