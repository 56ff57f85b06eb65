"""The programs: `sbatch`, `squeue` and the others, as far as this project asks them, in the words of the real ones."""

import getpass
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from tests.fakes.slurm.state import FINAL, become, new_job, opened, record

DOWN = "Unable to contact slurm controller (connect failure)"
SHORT = {
    "-J": "--job-name",
    "-o": "--output",
    "-e": "--error",
    "-t": "--time",
    "-p": "--partition",
    "-A": "--account",
    "-q": "--qos",
    "-D": "--chdir",
    "-n": "--ntasks",
    "-c": "--cpus-per-task",
    "-N": "--nodes",
    "-d": "--dependency",
    "-C": "--constraint",
    "-u": "--user",
    "-j": "--jobs",
    "-M": "--clusters",
}
FLAGS = {
    "--parsable",
    "--requeue",
    "--no-requeue",
    "--noheader",
    "--parsable2",
    "--duplicates",
    "--wait",
    "--overlap",
    "--hold",
    "--unbuffered",
    "--container-writable",
    "--no-container-mount-home",
    "--no-container-remap-root",
    "--no-container-entrypoint",
}


def main(command: str, folder: Path, argv: list[str]) -> None:
    stdin = sys.stdin.read() if command == "sbatch" and not positional(argv) and not sys.stdin.isatty() else ""
    record(folder, command, argv, stdin)
    with opened(folder) as state:
        banner, said = state["banner"], [s for s in state["says"] if s["command"] == command]
        seconds = state["controller_seconds"] if state["controller"] == "down" else 0.0
    if banner:
        print(banner)
    for answer in said:
        if answer["when"] in shlex.join(argv):
            sys.stdout.write(answer["stdout"])
            sys.stderr.write(answer["stderr"])
            sys.exit(answer["code"])
    if command != "sacct":
        time.sleep(seconds)
    PROGRAMS[command](folder, argv, stdin)


def options(argv: list[str]) -> dict[str, str]:
    """Long names to values; flags to "". Options end with the first word that is none, as for srun."""
    found, words = {}, list(argv)
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            break
        name, equals, value = word.partition("=")
        name = SHORT.get(name, name)
        if not equals and name not in FLAGS and words and not words[0].startswith("-"):
            value = words.pop(0)
        found[name] = value
    return found


def positional(argv: list[str]) -> list[str]:
    words = list(argv)
    while words and words[0].startswith("-"):
        name, equals, _ = words.pop(0).partition("=")
        if not equals and SHORT.get(name, name) not in FLAGS and words and not words[0].startswith("-"):
            words.pop(0)
    return words


def sbatch(folder: Path, argv: list[str], stdin: str) -> None:
    words = positional(argv)
    script = Path(words[0]).read_text() if words else stdin
    if not script.startswith("#!"):
        fail(
            "sbatch: error: This does not look like a batch script.  The first\nsbatch: error: line must start with #!"
        )
    asked = _directives(script) | options(argv)
    with opened(folder) as state:
        if state["controller"] == "down":
            fail(f"sbatch: error: Batch job submission failed: {DOWN}")
        queued = [job for job in state["jobs"] if job["state"] not in FINAL and job["user"] == getpass.getuser()]
        if state["max_submit"] is not None and len(queued) >= state["max_submit"]:
            fail(
                "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates "
                "accounting/QOS policy (job submit limit, user's size and/or time limits)"
            )
        job = new_job(
            state,
            user=getpass.getuser(),
            name=asked.get("--job-name") or (Path(words[0]).name if words else "sbatch"),
            options=asked,
            environ=_job_environ(asked),
            folder=asked.get("--chdir") or str(Path.cwd()),
            script=script,
        )
        if "--hold" in asked:
            become(job, "PENDING", reason="JobHeldUser")
        runs, cluster = state["runs"] and "--hold" not in asked, state["cluster"]
    if runs:
        start_node(folder, job["id"])
    if "--parsable" in asked:
        print(f"{job['id']};{cluster}" if cluster else job["id"])
    else:
        print(f"Submitted batch job {job['id']}" + (f" on cluster {cluster}" if cluster else ""))


def start_node(folder: Path, number: int) -> None:
    """A process of its own that outlives the command: what slurmd is to a job."""
    root = str(Path(__file__).parents[3])
    code = f"import sys; sys.path.insert(0, {root!r}); from tests.fakes.slurm.node import main; main()"
    with (folder / "node.log").open("a") as log:
        subprocess.Popen(
            [sys.executable, "-S", "-c", code, str(folder), str(number)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _directives(script: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in script.splitlines()[1:]:
        if line.startswith("#SBATCH"):
            found |= options(shlex.split(line.removeprefix("#SBATCH"), comments=True))
        elif line.strip() and not line.startswith("#"):
            break
    return found


def _job_environ(asked: dict[str, str]) -> dict[str, str]:
    """What --export and --export-file let through; NONE leaves what a login gives."""
    chosen = asked.get("--export", "ALL").split(",")
    login = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "USER": getpass.getuser()}
    environ = dict(os.environ) if "ALL" in chosen else login
    for word in chosen:
        name, equals, value = word.partition("=")
        if equals:
            environ[name] = value
        elif name in os.environ:
            environ[name] = os.environ[name]
    if path := asked.get("--export-file"):
        pairs = Path(path).read_bytes().decode().split("\0")
        environ |= dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    return environ


def squeue(folder: Path, argv: list[str], _: str) -> None:
    asked = options(argv)
    with opened(folder) as state:
        if state["controller"] == "down":
            fail(f"slurm_load_jobs error: {DOWN}")
        for job in state["jobs"]:
            if job["script_states"]:
                word, facts = job["script_states"].pop(0)
                become(job, word, **facts)
        jobs = [job for job in state["jobs"] if job["is_queued"]]
    wanted = asked["--jobs"].split(",") if asked.get("--jobs") else None
    if wanted is not None and len(wanted) == 1 and wanted[0] not in (str(job["id"]) for job in jobs):
        fail("slurm_load_jobs error: Invalid job id specified")
    if "--states" not in asked:
        jobs = [job for job in jobs if job["state"] not in FINAL]
    columns = [column.split(":") for column in asked["--Format"].split(",")]
    if "--noheader" not in asked:
        print("".join(name.upper().ljust(int(width)) for name, width in columns))
    for job in _chosen(jobs, asked):
        print("".join(_squeue_cell(job, name)[: int(width)].ljust(int(width)) for name, width in columns))


def _squeue_cell(job: dict[str, Any], name: str) -> str:
    life = job["lives"][-1]
    code, _, signal = life["exit"].partition(":")
    cells = {
        "jobid": job["id"],
        "state": job["state"],
        "username": job["user"],
        "restartcnt": job["restarts"],
        "exit_code": int(code) << 8 | int(signal),
        "submittime": _time(job["submit"]),
        "starttime": _time(life["start"]),
        "endtime": _time(life["end"]),
        "reason": job["reason"],
        "name": job["name"],
        "partition": job["options"].get("--partition", "cpu"),
        "account": job["options"].get("--account", "root"),
    }
    return str(cells[name.lower()])


def sacct(folder: Path, argv: list[str], _: str) -> None:
    asked = options(argv)
    with opened(folder) as state:
        mode, jobs = state["accounting"], [job for job in state["jobs"] if job["is_accounted"]]
    if mode == "off":
        fail("Slurm accounting storage is disabled")
    if mode == "down":
        fail(
            "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection to "
            "host:localhost:6819: Connection refused\nsacct: error: Problem talking to the database: Connection refused"
        )
    if mode == "late":
        return
    columns = asked["--format"].split(",")
    if "--noheader" not in asked:
        print("|".join(columns))
    for job in _chosen(jobs, asked):
        lives = job["lives"] if "--duplicates" in asked else job["lives"][-1:]
        for number, life in enumerate(lives):
            is_last = number == len(lives) - 1
            if mode == "stale" and is_last:
                life = life | {"state": "RUNNING", "end": None, "exit": "0:0"}
            named = job | {"name": "allocation"} if mode == "nameless" else job
            print("|".join(_sacct_cell(named, life, name) for name in columns))
            for step, word in life["steps"].items():
                print("|".join(_step_cell(job, life, step, word, name) for name in columns))


def _sacct_cell(job: dict[str, Any], life: dict[str, Any], name: str) -> str:
    by = f" by {job['by']}" if life["state"] == "CANCELLED" and job["by"] != "" else ""
    cells = {
        "jobid": job["id"],
        "jobidraw": job["id"],
        "state": f"{life['state']}{by}",
        "exitcode": life["exit"],
        "user": job["user"],
        "submit": _time(life["submit"]),
        "start": _time(life["start"]),
        "end": _time(life["end"]),
        "reason": "None",
        "jobname": job["name"],
        "account": job["options"].get("--account", "root"),
    }
    return str(cells[name.lower()])


def _step_cell(job: dict[str, Any], life: dict[str, Any], step: str, word: str, name: str) -> str:
    own = {
        "jobid": f"{job['id']}.{step}",
        "jobidraw": f"{job['id']}.{step}",
        "state": word,
        "jobname": step,
        "user": "",
    }
    return str(own[name.lower()]) if name.lower() in own else _sacct_cell(job, life, name)


def scancel(folder: Path, argv: list[str], _: str) -> None:
    asked, numbers = options(argv), positional(argv)
    with opened(folder) as state:
        if state["controller"] == "down":
            fail(f"scancel: error: slurm_load_jobs error: {DOWN}")
        for number in numbers:
            found = [job for job in state["jobs"] if str(job["id"]) == number and job["is_queued"]]
            if not found:
                fail(f"scancel: error: Kill job error on job id {number}: Invalid job id specified")
            job = found[-1]
            if asked.get("--user", job["user"]) != job["user"] or asked.get("--name", job["name"]) != job["name"]:
                continue
            if "--signal" in asked:
                job["asked"] = f"signal {asked['--signal'].removeprefix('SIG')}"
            elif job["pid"] is not None:
                job["asked"] = "cancel"
            elif job["state"] not in FINAL:
                become(job, "CANCELLED", by=str(os.getuid()))


def scontrol(folder: Path, argv: list[str], _: str) -> None:
    """`requeue ID` and `show job ID`; for anything else there is FakeSlurm.says."""
    verb, *words = positional(argv)
    with opened(folder) as state:
        if state["controller"] == "down":
            fail(f"{DOWN} for job")
        if verb == "requeue":
            for number in words[0].split(","):
                job = _find(state, number)
                if job["pid"] is not None:
                    job["asked"] = "requeue"
                else:
                    become(job, "PENDING", reason="BeginTime")
        elif verb == "show" and words[0] == "job":
            job = _find(state, words[1])
            print(f"JobId={job['id']} JobName={job['name']}\n   UserId={job['user']}({os.getuid()}) GroupId=root(0)")
            print(f"   JobState={job['state']} Reason={job['reason']} Dependency=(null)")
            print(f"   Requeue=1 Restarts={job['restarts']} BatchFlag=1 Reboot=0 ExitCode={job['lives'][-1]['exit']}")
        elif verb == "show" and words[0] == "config":
            print("MaxArraySize            = 1001\nMaxJobCount             = 10000\nKillWait                = 30 sec")
        else:
            fail(f"scontrol: the fake does not know {shlex.join(argv)}: FakeSlurm.says teaches it")


def _find(state: dict[str, Any], number: str) -> dict[str, Any]:
    found = [job for job in state["jobs"] if str(job["id"]) == number and job["is_queued"]]
    return found[-1] if found else fail("slurm_load_jobs error: Invalid job id specified")


def srun(folder: Path, argv: list[str], _: str) -> None:
    """The command itself, with the variables of pyxis: what the image sets wins, but for --container-env."""
    asked = options(argv)
    with opened(folder) as state:
        image = state["image_env"] if "--container-image" in asked else {}
    kept = [name for name in asked.get("--container-env", "").split(",") if name in os.environ]
    words = positional(argv)
    os.execvpe(words[0], words, {**os.environ, **image, **{name: os.environ[name] for name in kept}})


def untaught(folder: Path, argv: list[str], _: str) -> None:
    fail(f"the fake does not know {shlex.join(argv)}: FakeSlurm.says teaches it")


def _chosen(jobs: list[dict[str, Any]], asked: dict[str, str]) -> list[dict[str, Any]]:
    numbers = set(re.split(",", asked["--jobs"])) if asked.get("--jobs") else None
    users = set(asked["--user"].split(",")) if asked.get("--user") else None
    return [
        job
        for job in jobs
        if (numbers is None or str(job["id"]) in numbers) and (users is None or job["user"] in users)
    ]


def _time(seconds: float | None) -> str:
    """As SLURM_TIME_FORMAT asks."""
    if seconds is None:
        return "Unknown"
    return time.strftime(os.environ.get("SLURM_TIME_FORMAT", "%Y-%m-%dT%H:%M:%S"), time.localtime(seconds))


def fail(text: str, code: int = 1) -> NoReturn:
    print(text, file=sys.stderr)
    sys.exit(code)


PROGRAMS = {
    "sbatch": sbatch,
    "squeue": squeue,
    "sacct": sacct,
    "scancel": scancel,
    "scontrol": scontrol,
    "srun": srun,
    "sinfo": untaught,
    "sacctmgr": untaught,
}
