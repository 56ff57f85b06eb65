"""`python3 -I - QUESTIONS < survey.py` on the login node: everything that must be known there before a job is
submitted, in one look. Standard library only, Python 3.6 and later.
"""

import json
import os
import pwd
import shutil
import sys
import time
from typing import Any, Dict, List

CLAIM = ".nemotron-eval.lock"


def main(questions: Dict[str, Any]) -> Dict[str, Any]:
    home = os.path.expanduser("~")
    output_dir = questions["output_dir"]
    job_dir = questions["job_dir"] or home + "/.nemotron/jobs"
    return {
        "home": os.path.realpath(home),
        "job_dir": job_dir,
        "user": pwd.getpwuid(os.getuid()).pw_name,
        "has_sbatch": shutil.which("sbatch") is not None,
        "uid": os.getuid(),
        "gid": os.getgid(),
        "now": time.time(),
        "real": {path: os.path.realpath(path) for path in [*questions["paths"], output_dir]},
        "missing": [path for path in questions["paths"] if not os.path.exists(path)],
        "closed": closed([output_dir, job_dir]),
        "filled": [task for task in questions["tasks"] if is_filled(os.path.join(output_dir, task))],
        "claim": claim(os.path.join(output_dir, CLAIM)),
    }


def closed(folders: List[str]) -> Dict[str, str]:
    """Those that cannot be made or written to, and what is in the way."""
    ways = {folder: way(folder) for folder in folders}
    return {
        folder: place
        for folder, place in ways.items()
        if not os.path.isdir(place) or not os.access(place, os.W_OK | os.X_OK)
    }


def way(folder: str) -> str:
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return folder


def is_filled(folder: str) -> bool:
    try:
        return bool(os.listdir(folder))
    except OSError:
        return False


def claim(path: str) -> Dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            said = json.load(file)
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
