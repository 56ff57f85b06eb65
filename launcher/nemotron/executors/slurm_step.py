"""The batch step of a job, on the first node of its allocation: `python3 -I step.pyz FOLDER`.

It opens the job's secrets, hands them to the container through its standard input, passes on what Slurm signals, writes
how the job is into its folder, and puts the job back into the queue when only its time was up. Slurm itself starts jobs
again that were preempted or lost their node; this step only counts how often.

Standard library only, Python 3.6 and later: it runs on whatever the nodes have.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from nemotron.executors.sealed import Unreadable, unseal
from nemotron.slurm.folder import CANCELLED, LOG, MARKER, SECRETS, STEP

KEY = "NEMOTRON_SEAL"
"""The variable with the key of the sealed secrets."""
GRACE_SECONDS = 40.0
"""For the runner to end its harness and to write its summary; then for the tool that holds the container."""
KILL_SECONDS = 10.0
TICK_SECONDS = 0.1
CLEAN_SECONDS = 60.0
OK, TASK_FAILED, REFUSED, STOPPED = 0, 1, 2, 75
TAIL_BYTES = 1 << 14
SAID = ("Error: ", "error: ", "srun: error: ", "slurmstepd: error: ", "pyxis: ")
"""How lines begin in which somebody says why it went wrong."""
COMPLAINT = re.compile(r"error|fatal|unrecognized|cannot|denied|no such|not found|failed|unable", re.IGNORECASE)
SHOWN_LINES = 5
FOR_THE_RUNNER = ("SLURM_JOB_", "SLURM_CLUSTER_NAME", "SLURM_RESTART_COUNT", "SLURMD_NODENAME", "SLURM_CPUS_")

Requeue = Callable[[str], str]
"""Takes the job's id; gives back what is against it, or never returns, or an empty string."""


class Failed(Exception):
    """The job cannot begin."""


class Stop:
    """What Slurm told this step. That its time is nearly up, it also sees by itself: told before it listened, it would
    never know."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._is_told = False
        self.time_is_up = False

    @property
    def is_requested(self) -> bool:
        if time.time() >= self._deadline and not self._is_told:
            self._time()
        return self._is_told

    def listen(self) -> None:
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(signal.SIGINT, self._end)
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, self._time)

    def _end(self, *_: object) -> None:
        self._is_told = True

    def _time(self, *_: object) -> None:
        self._is_told = self.time_is_up = True


class Step:
    """One life of the job: it has another one each time that Slurm starts it again."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.job_id = os.environ.get("SLURM_JOB_ID", "")
        self.restarts = int(os.environ.get("SLURM_RESTART_COUNT") or 0)
        with open(os.path.join(folder, STEP), encoding="utf-8") as file:
            spec: Dict[str, Any] = json.load(file)
        self.spec = spec
        self.key = os.environ.pop(KEY, "")  # not for anything that is started here
        self._started = time.time()

    @property
    def deadline(self) -> float:
        """When to stop, seconds since the epoch; newer releases of Slurm say when the job's time is up."""
        # A job of an earlier version goes on with this one under submitit: its folder lacks what is new here.
        limit: Optional[float] = self.spec.get("time_limit")
        end = os.environ.get("SLURM_JOB_END_TIME", "")
        if end.isdigit():
            return float(end) - float(self.spec.get("warning", 0))
        return self._started + limit - float(self.spec["warning"]) if limit else float("inf")

    @property
    def may_go_on(self) -> bool:
        return bool(self.restarts < self.spec["max_requeues"]) and not self.is_cancelled

    @property
    def is_cancelled(self) -> bool:
        return os.path.exists(os.path.join(self.folder, CANCELLED))

    def secrets(self) -> Dict[str, str]:
        path = os.path.join(self.folder, SECRETS)
        if not self.spec["has_secrets"]:
            return {}
        if not self.key:
            raise Failed(
                "the key of its secrets did not arrive: this cluster drops what sbatch is told to export; ask its "
                "administrators, or submit without secrets"
            )
        try:
            with open(path, "rb") as file:
                values = unseal(file.read(), self.key)
        except (OSError, Unreadable) as error:
            raise Failed("its secrets cannot be read (%s): submit it again" % (str(error) or "wrong key")) from None
        if not self.may_go_on:
            self.forget_secrets()
        return values

    def forget_secrets(self) -> None:
        remove(os.path.join(self.folder, SECRETS))

    def environ(self) -> Dict[str, str]:
        """What the job gets beyond the image's variables; what the user gave comes last."""
        own = {name: value for name, value in os.environ.items() if name.startswith(FOR_THE_RUNNER)}
        environ: Dict[str, str] = dict(own, **self.spec["environ"])
        environ.update(self.secrets())
        if self.spec["first_in_path"]:
            path = environ.get("PATH") or os.environ.get("PATH") or os.defpath
            environ["PATH"] = os.pathsep.join([self.spec["first_in_path"], path])
        return environ

    def mark(self, exit_code: Optional[int], reason: str, is_over: bool = True) -> None:
        marker = {
            "job_id": self.job_id,
            "restarts": self.restarts,
            "is_over": is_over,
            "exit_code": exit_code,
            "reason": reason,
            "updated": time.time(),
        }
        path = os.path.join(self.folder, MARKER)
        try:
            with open(path + ".tmp", "w", encoding="utf-8") as file:
                json.dump(marker, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(path + ".tmp", path)
        except OSError as error:
            say("%s cannot be written: %s" % (path, error.strerror))

    def end(self, exit_code: int, reason: str = "") -> int:
        self.forget_secrets()
        self.mark(exit_code, reason)
        if reason:
            say(reason)
        return exit_code


def main(folder: str, requeue: Optional[Requeue] = None) -> int:
    """The exit code: the runner's."""
    step = Step(folder)
    stop = Stop(step.deadline)
    stop.listen()
    step.mark(None, "", is_over=False)
    if step.is_cancelled:
        return step.end(STOPPED, "cancelled")
    if step.restarts > step.spec["max_requeues"]:
        return step.end(STOPPED, "started again %d times, more than max_requeues allows" % step.restarts)
    try:
        code = run_container(step, stop)
    except Failed as error:
        return step.end(TASK_FAILED, str(error))
    return conclude(step, stop, code, requeue or scontrol_requeue)


def run_container(step: Step, stop: Stop) -> int:
    """The exit code of the first command that fails, which is the runner's where all others are fine."""
    line = json.dumps({"environ": step.environ(), "stops_at_end": True}).encode("utf-8") + b"\n"
    try:
        os.makedirs(step.spec["output_dir"], exist_ok=True)
    except OSError as error:
        raise Failed("%s cannot be made: %s" % (step.spec["output_dir"], error.strerror)) from None
    if step.restarts:
        clean_up(step)  # a life that was killed could not do it
    try:
        for command in step.spec["prepare"]:
            code = run_command(command, None, stop)
            if code != OK:
                return code
        return run_command(step.spec["run"], line, stop)
    finally:
        clean_up(step)


def run_command(command: List[str], line: Optional[bytes], stop: Stop) -> int:
    """As a shell would tell it. The command gets the line, and the end of its input means that it is to stop; a tool
    that does not care gets SIGTERM, and then SIGKILL."""
    if stop.is_requested:
        return STOPPED
    try:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, env=dict(os.environ))
    except OSError as error:
        raise Failed("%s cannot be started on this node: %s" % (command[0], error.strerror)) from None
    assert child.stdin is not None
    if line is None or not give(child.stdin, line):
        close(child.stdin)
    deadlines = [GRACE_SECONDS, KILL_SECONDS] if line is not None else [0.0, KILL_SECONDS]
    while child.poll() is None and not stop.is_requested:
        time.sleep(TICK_SECONDS)
    close(child.stdin)
    for seconds, end in zip(deadlines, (child.terminate, child.kill)):
        deadline = time.time() + seconds
        while child.poll() is None and time.time() < deadline:
            time.sleep(TICK_SECONDS)
        if child.poll() is None:
            end()
    code = child.wait()
    return code if code >= 0 else 128 - code


def give(stdin: Any, line: bytes) -> bool:
    try:
        stdin.write(line)
        stdin.flush()
    except OSError:
        return False
    return True


def close(stdin: Any) -> None:
    try:
        stdin.close()
    except OSError:
        pass  # it has ended without having read everything


def clean_up(step: Step) -> None:
    for command in step.spec["clean_up"]:
        try:
            subprocess.call(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=CLEAN_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            say("cleaning up after the container: %s" % error)


def conclude(step: Step, stop: Stop, code: int, requeue: Requeue) -> int:
    if code == OK:
        return step.end(OK)
    if step.is_cancelled and (stop.is_requested or code == STOPPED):
        return step.end(STOPPED, "cancelled")
    if stop.time_is_up:
        return go_on(step, "its time limit was up", requeue)
    if (stop.is_requested or code == STOPPED) and has_yet_to_be_preempted(step.job_id):
        return go_on(step, "it was preempted", requeue)
    if stop.is_requested:
        return leave_to_slurm(step)
    return step.end(code, why(step, code))


def go_on(step: Step, cause: str, requeue: Requeue) -> int:
    """As the same job, from what it finished."""
    if not step.may_go_on:
        return step.end(STOPPED, "%s, after %d restarts; resume=true goes on" % (cause, step.restarts))
    goes_on = "%s; it goes on by itself, %d of %d times" % (cause, step.restarts + 1, step.spec["max_requeues"])
    step.mark(None, goes_on, is_over=False)
    say(goes_on)
    objection = requeue(step.job_id)
    if objection:
        return step.end(STOPPED, "%s, and Slurm does not start it again: %s" % (cause, objection))
    return STOPPED


def leave_to_slurm(step: Step) -> int:
    """Which has ended this life of the job, and may start another: then it needs its secrets."""
    if not step.may_go_on:
        step.forget_secrets()
    step.mark(STOPPED, "told to stop by Slurm: cancelled or preempted")
    return STOPPED


def has_yet_to_be_preempted(job_id: str) -> bool:
    """In the time of grace that some clusters give, steps are told to stop, but for this one. A job that ends in it is
    not started again by Slurm."""
    said = scontrol("show", "job", "-o", job_id)[1]
    return "JobState=RUNNING" in said and re.search(r"\bPreemptTime=\d", said) is not None


def scontrol_requeue(job_id: str) -> str:
    code, said = scontrol("requeue", job_id)
    return "" if code == 0 else said or "scontrol ended with %d" % code


def scontrol(*words: str) -> Tuple[int, str]:
    """Exit code, and all that it said on one line."""
    try:
        done = subprocess.run(["scontrol", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, str(error)
    return done.returncode, " ".join(done.stdout.decode("utf-8", "replace").split())


def why(step: Step, code: int) -> str:
    """In the words of whoever knows: the runner says what it refuses, tools say what they could not do."""
    if code in (OK, STOPPED):
        return ""
    lines = last_lines(os.path.join(step.folder, LOG))
    line = lines[-1] if lines else "it said nothing"
    if code in (TASK_FAILED, REFUSED):
        return next((line[len(start) :] for start in SAID if line.startswith(start)), "")
    tool = os.path.basename(step.spec["run"][0])
    if code == 137:
        return "killed (137), by the system when memory runs out: raise mem in the profile if it did"
    return "%s ended with %d: %s" % (tool, code, next(filter(COMPLAINT.search, reversed(lines)), line))


def last_lines(path: str) -> List[str]:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [line.strip() for line in lines if line.strip()][-SHOWN_LINES:]


def remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def say(text: str) -> None:
    print("nemotron: %s" % text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
