"""What a place knows of itself: `python3 -I - QUESTIONS < probe.py` on a login node, or as the runner of a job, with
the path of a plan that has the questions under "probe". Answers with one line of JSON after a mark.

Standard library only, Python 3.6 and later. Tokens come by environment, and no answer holds one.
"""

import json
import os
import pwd
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from typing import Any, Dict, List
from urllib.parse import urlsplit, urlunsplit

MARK = "nemotron-probe "
SAMPLE = bytes(1 << 16)
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 20.0
COMMAND_SECONDS = 20.0
LONGEST_ANSWER = 1 << 22


def main(argument: str) -> None:
    questions = json.loads(argument) if argument.startswith("{") else from_plan(argument)
    print(MARK + json.dumps(answers(questions)), flush=True)


def from_plan(path: str) -> Dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        plan = json.load(file)
    questions = plan["probe"]  # type: Dict[str, Any]
    if questions.get("endpoint"):
        questions["endpoint"] = plan["model"]
    return questions


def answers(questions: Dict[str, Any]) -> Dict[str, Any]:
    return {
        "host": os.environ.get("SLURMD_NODENAME") or socket.gethostname(),
        "user": pwd.getpwuid(os.getuid()).pw_name,
        "home": os.path.expanduser("~"),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "now": time.time(),
        "sources": {path: source(path) for path in questions.get("sources", [])},
        "folders": {path: folder(os.path.expanduser(path)) for path in questions.get("folders", [])},
        "commands": {name: shutil.which(name) or "" for name in questions.get("commands", [])},
        "has_pyxis": "--container-image" in said(["srun", "--help"]) if questions.get("pyxis") else None,
        "has_image": bool(said(questions["engine_image"])) if questions.get("engine_image") else None,
        "cached": {name: is_cached(name) for name in questions.get("hub_items", [])},
        "urls": {url: reached(url, {}, []) for url in questions.get("urls", [])},
        "endpoint": endpoint(questions["endpoint"]) if questions.get("endpoint") else None,
        "quota": quota(questions.get("folders", [])) if questions.get("quota") else "",
    }


def source(path: str) -> str:
    """Why it cannot be read; nothing if it can."""
    if not os.path.lexists(path):
        return "does not exist"
    if not os.path.exists(path):
        return "is a link to nothing"
    return "" if os.access(path, os.R_OK | (os.X_OK if os.path.isdir(path) else 0)) else "may not be read"


def folder(path: str) -> Dict[str, Any]:
    """Written for real where it is, or would be made: neither permissions nor quotas can be judged by looking."""
    there = path
    while not os.path.lexists(there) and there != "/":
        there = os.path.dirname(there)
    found = {"exists": there == path, "there": there, "flaw": written(there), "free_bytes": 0, "free_files": None}
    try:
        space = os.statvfs(there)
    except OSError:
        return found
    found["free_bytes"] = space.f_bavail * space.f_frsize
    if space.f_files:
        found["free_files"] = space.f_favail
    return found


def written(there: str) -> str:
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(SAMPLE)
            file.flush()
            os.fsync(file.fileno())
        return ""
    except OSError as error:
        return error.strerror or str(error)


def quota(folders: List[str]) -> str:
    """The tables of `quota` and, for a Lustre file system, of `lfs quota`; both have the same columns."""
    tables = [said(["quota", "-wp"])]
    if shutil.which("lfs"):
        user = pwd.getpwuid(os.getuid()).pw_name
        mounted = {mount_of(path) for path in folders}
        tables += [said(["lfs", "quota", "-u", user, path]) for path in sorted(mounted)]
    return "\n".join(tables)


def is_cached(name: str) -> bool:
    """`models--org--name` or `datasets--org--name`, as the hub's own library lays its cache out."""
    home = os.environ.get("HF_HOME") or os.path.join(os.path.expanduser("~"), ".cache", "huggingface")
    hub = os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")
    return os.path.isdir(os.path.join(hub, name, "snapshots"))


def mount_of(path: str) -> str:
    path = os.path.realpath(os.path.expanduser(path))
    while not os.path.ismount(path):
        path = os.path.dirname(path)
    return path


def said(command: List[str]) -> str:
    """Nothing, if it cannot be run or fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=COMMAND_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def endpoint(asked: Dict[str, Any]) -> Dict[str, Any]:
    """How far a request for the list of models gets; `asked` is the model of a plan."""
    url = asked["endpoint_url"] or os.environ.get(asked["endpoint_url_variable"], "")
    token = os.environ.get(asked["api_key_name"] or "", "")
    parts = urlsplit(url)
    headers = {"Authorization": "Bearer " + token} if token else {}
    host = parts.netloc.rpartition("@")[2]
    path = parts.path.rstrip("/")
    for ending in ("/chat/completions", "/completions"):
        if path.endswith(ending):
            path = path[: -len(ending)] + "/models"
            break
    secrets = [word for word in (token, parts.username, parts.password, parts.query) if word]
    return reached(urlunsplit((parts.scheme, host, path, parts.query, "")), headers, secrets)


def reached(url: str, headers: Dict[str, str], secrets: List[str]) -> Dict[str, Any]:
    """`stage` is where it ended: name, connection, tls, http, or answer."""
    parts = urlsplit(url)
    found = {"stage": "answer", "said": "", "status": None, "models": []}  # type: Dict[str, Any]
    try:
        if not is_proxied(parts.scheme, parts.hostname or ""):
            connect(parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
        request = urllib.request.Request(url, headers=headers)
        with opener().open(request, timeout=ANSWER_SECONDS) as reply:
            found["status"] = reply.status
            found["models"] = models(reply.read(LONGEST_ANSWER))
    except urllib.error.HTTPError as error:
        found["status"] = error.code
        with error:
            found["said"] = short(error.read(2000).decode("utf-8", "replace"))
    except socket.gaierror as error:
        found.update(stage="name", said=error.strerror or str(error))
    except (ssl.SSLError, ssl.CertificateError) as error:
        found.update(stage="tls", said=getattr(error, "verify_message", "") or error.args[-1])
    except urllib.error.URLError as error:
        found.update(stage="http", said=str(error.reason))
    except (socket.timeout, TimeoutError):
        found.update(stage="connection", said="no answer within %d s" % CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        found.update(stage="connection", said=getattr(error, "strerror", None) or str(error))
    found["said"] = masked(short(found["said"]), secrets)
    return found


def connect(scheme: str, host: str, port: int) -> None:
    """One step after the other, so that the one that fails has its own name."""
    socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
    with socket.create_connection((host, port), CONNECT_SECONDS) as connection:
        if scheme == "https":
            shake_hands(connection, host)


def shake_hands(connection: socket.socket, host: str) -> None:
    try:
        with ssl.create_default_context().wrap_socket(connection, server_hostname=host):
            pass
    except ssl.SSLError:
        raise
    except OSError:
        raise ssl.SSLError("it hangs up on https, does it speak http?") from None


def is_proxied(scheme: str, host: str) -> bool:
    return scheme in urllib.request.getproxies() and not urllib.request.proxy_bypass(host)


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A token belongs to the host that was named."""

    def redirect_request(self, *_: Any) -> None:
        return None


def opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(NoRedirects)


def models(content: bytes) -> List[str]:
    try:
        listed = json.loads(content.decode("utf-8"))["data"]
        return [str(item["id"]) for item in listed][:50]
    except (ValueError, KeyError, TypeError):
        return []


def short(text: str) -> str:
    return " ".join(text.split())[:200]


def masked(text: str, secrets: List[str]) -> str:
    for word in sorted(secrets, key=len, reverse=True):
        if len(word) > 4:
            text = text.replace(word, "***")
    return text


if __name__ == "__main__":
    main(sys.argv[1])
