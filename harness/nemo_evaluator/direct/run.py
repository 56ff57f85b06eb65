"""One job, every task: refuse or claim, look at the endpoint, run task after task, record what became of each."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Mapping

from nemo_evaluator.direct import manifest as documents
from nemo_evaluator.direct.atomic import read_json, write_json, write_text
from nemo_evaluator.direct.checks import check_folders, check_plan, check_same_settings, find_executable
from nemo_evaluator.direct.child import run_child
from nemo_evaluator.direct.claim import Claim, check_claim, job_id, restarts
from nemo_evaluator.direct.command import RUN_CONFIG, Command, build_command
from nemo_evaluator.direct.environment import check_secrets, child_environment, endpoint_url, secret_values, token
from nemo_evaluator.direct.errors import Refused
from nemo_evaluator.direct.masking import Masker, is_secret_url, redact_url
from nemo_evaluator.direct.outcome import OK, read_summary, state_of, write_outcome
from nemo_evaluator.direct.packages import installed_packages
from nemo_evaluator.direct.plan import Plan, Task
from nemo_evaluator.direct.preflight import preflight
from nemo_evaluator.direct.probe import Endpoint
from nemo_evaluator.direct.progress import NAME as PROGRESS
from nemo_evaluator.direct.progress import Progress
from nemo_evaluator.direct.relay import Relay
from nemo_evaluator.direct.signals import Stop
from nemo_evaluator.direct.teed import HarnessLog

FAILED = 1
TERMINATED = 143
INTERRUPTED_MARK = ".nemo_evaluator_interrupted"
"""The harness leaves it when it was told to stop; it then exits with 0 all the same."""


@dataclass(frozen=True)
class Setting:
    """What was found out before anything was touched."""

    plan: Plan
    url: str
    executable: Path
    job: str | None
    restarts: int
    environ: Mapping[str, str]
    """The harness's, not the runner's."""
    masker: Masker
    continues: bool
    """Finished tasks are kept: the user said resume, or the scheduler restarted this job."""


@dataclass(frozen=True)
class Session:
    """What lives as long as the claim."""

    setting: Setting
    claim: Claim
    progress: Progress
    stop: Stop
    say: Callable[[str], None]


def run(plan: Plan, environ: Mapping[str, str], stop: Stop, say: Callable[[str], None]) -> int:
    """The exit code. Raises Refused before anything was created or deleted, StorageFailed when a file is not kept."""
    setting = prepare(plan, environ)
    if plan.dry_run:
        return describe(setting, say)
    if plan.preflight:
        with stop.raising():
            look_ahead(setting, environ, stop, say)
        setting = prepare(plan, environ)  # waiting for the endpoint may have taken long
    make_output_dir(plan.output_dir)
    with Claim(plan.output_dir, setting.job, plan.resume, setting.restarts) as claim:
        progress = Progress(plan.output_dir, setting.job, len(plan.tasks), say)
        return run_tasks(Session(setting, claim, progress, stop, say))


def prepare(plan: Plan, environ: Mapping[str, str]) -> Setting:
    url = endpoint_url(plan, environ)
    check_plan(plan, url)
    check_secrets(plan, environ)
    executable = find_executable(environ)
    job = job_id(environ)
    check_claim(plan.output_dir, job, plan.resume, restarts(environ))
    continues = plan.resume or was_restarted(plan.output_dir, job)
    check_folders(plan, may_exist=continues or plan.overwrite)
    if continues:
        check_same_settings(plan, read_json(plan.output_dir / "run_manifest.json"))
    masker = Masker(secret_values(plan, environ, url))
    child = child_environment(plan, environ, executable)
    return Setting(plan, url, executable, job, restarts(environ), child, masker, continues)


def was_restarted(output_dir: Path, job: str | None) -> bool:
    """True when this very job got as far as its first task here, and did not come to its end."""
    progress = read_json(output_dir / PROGRESS)
    return job is not None and progress.get("job") == job and progress.get("state") in ("running", "stopped")


def describe(setting: Setting, say: Callable[[str], None]) -> int:
    """The dry run: what would be done, in files of their own beside whatever is there."""
    plan = setting.plan
    make_output_dir(plan.output_dir)
    commands = build_commands(setting, setting.url)
    write_manifest(setting, commands, plan.output_dir / "run_manifest.dry-run.json", {}, say)
    write_json(plan.output_dir / "summary.dry-run.json", {task.name: "dry-run" for task in plan.tasks})
    for task in plan.tasks:
        say(f"[{task.name}] {documents.printable(commands[task.name], setting.masker)}")
    say(f"eval_results: {plan.output_dir}")
    say(f"eval_summary: {plan.output_dir / 'summary.dry-run.json'}")
    return 0


def look_ahead(setting: Setting, environ: Mapping[str, str], stop: Stop, say: Callable[[str], None]) -> None:
    endpoint = Endpoint(setting.url, token(setting.plan, environ))
    masked = setting.masker.mask_text  # servers repeat what they were sent
    findings = preflight(
        setting.plan, endpoint, setting.executable, setting.environ, stop.sleep, lambda line: say(masked(line))
    )
    if findings:
        raise Refused(masked("\n".join(findings)))
    say(f"preflight: ok, {redact_url(setting.url)} serves {setting.plan.model.id}")


def make_output_dir(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"{folder} cannot be created ({error.strerror}): choose another EVAL_RESULTS_DIR.") from error


def run_tasks(session: Session) -> int:
    setting, plan = session.setting, session.setting.plan
    states, carried = begin_folder(setting, session.progress)
    with ExitStack() as stack:
        url = stack.enter_context(Relay(setting.url)).url if is_secret_url(setting.url) else setting.url
        commands = build_commands(setting, url)
        write_manifest(setting, commands, plan.output_dir / "run_manifest.json", carried, session.say)
        write_outcome(plan.output_dir, states, setting.masker)
        session.progress.write("running")
        for task in plan.tasks:
            if not session.stop.is_requested and task.name not in states:
                run_task(session, task, commands[task.name], states)
                write_outcome(plan.output_dir, states, setting.masker)
            session.progress.tasks_done += task.name in states
    return conclude(session, states)


def begin_folder(setting: Setting, progress: Progress) -> tuple[dict[str, str], dict[str, Any]]:
    """Make room. Gives back the states and the manifest entries of earlier sessions that go on holding."""
    plan = setting.plan
    states, carried = earlier_sessions(plan, setting.continues)
    if not setting.continues:
        progress.write("starting")  # killed before it says "running", the job begins anew when it is restarted
        write_outcome(plan.output_dir, states, setting.masker)
    for task in plan.tasks:
        if plan.overwrite and not setting.continues and plan.folder(task).exists():
            shutil.rmtree(plan.folder(task))
        plan.folder(task).mkdir(exist_ok=True)
    return states, carried


def earlier_sessions(plan: Plan, continues: bool) -> tuple[dict[str, str], dict[str, Any]]:
    """Tasks that this plan does not run stay on record if they were about the same model in the same image."""
    before = read_json(plan.output_dir / "run_manifest.json")
    model, image = before.get("model", {}), before.get("harness", {}).get("image")
    same = model.get("id"), model.get("endpoint_type"), image
    if same != (plan.model.id, plan.model.endpoint_type, plan.harness.image):
        return {}, {}
    names = {task.name for task in plan.tasks}
    carried = {name: entry for name, entry in before.get("tasks", {}).items() if name not in names}
    states = read_summary(plan.output_dir)
    kept = {name for name, state in states.items() if continues and name in names and state == OK}
    return {name: state for name, state in states.items() if name in carried or name in kept}, carried


def build_commands(setting: Setting, url: str) -> dict[str, Command]:
    return {task.name: build_command(setting.plan, task, setting.executable, url) for task in setting.plan.tasks}


def write_manifest(
    setting: Setting, commands: dict[str, Command], path: Path, carried: dict[str, Any], say: Callable[[str], None]
) -> None:
    packages = installed_packages(setting.executable, setting.environ)
    if not packages:
        say(f"warning: the packages behind {setting.executable} cannot be listed, the manifest names none")
    write_json(path, documents.manifest(setting.plan, setting.url, commands, packages, carried, setting.masker))
    say(f"eval_manifest: {path}")


def run_task(session: Session, task: Task, command: Command, states: dict[str, str]) -> None:
    """Enters the state of the task, unless it was stopped: then it has none."""
    setting, folder = session.setting, session.setting.plan.folder(task)
    if command.run_config is not None:
        write_text(folder / RUN_CONFIG, command.run_config)
    (folder / INTERRUPTED_MARK).unlink(missing_ok=True)
    session.say(f"[{task.name}] {documents.printable(command, setting.masker)}")
    session.progress.begin(task.name, (folder / "progress", folder / "adapter" / "progress"))
    code = run_harness(session, command.argv, folder / "harness.log")
    if code == 0 and (folder / INTERRUPTED_MARK).exists():
        code = TERMINATED
    if not session.stop.is_requested:
        states[task.name] = state_of(code)


def run_harness(session: Session, argv: list[str], path: Path) -> int:
    log = HarnessLog(path, session.setting.masker)
    try:
        return run_child(
            argv,
            session.setting.environ,
            lambda data: session.progress.hear(log.write(data)),
            session.stop,
            session.claim.note_child,
            lambda: session.progress.tick("stopped" if session.stop.is_requested else "running"),
        )
    finally:
        log.close()
        session.claim.note_child(None)


def conclude(session: Session, states: Mapping[str, str]) -> int:
    plan = session.setting.plan
    session.say(f"eval_results: {plan.output_dir}")
    session.say(f"eval_summary: {plan.output_dir / 'summary.json'}")
    for task in plan.tasks:
        session.say(f"  {task.name}: {states.get(task.name, 'not finished')}")
    if not all(task.name in states for task in plan.tasks):
        session.progress.write("stopped")
        return session.stop.exit_code
    session.progress.begin(None)
    session.progress.write("finished")
    return 0 if all(states[task.name] == OK for task in plan.tasks) else FAILED
