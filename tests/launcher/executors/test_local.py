"""What a job on this machine gets to see."""

import json
from pathlib import Path

from tests.launcher.world import TOKEN

HERE = ("-r", "local_eval_direct", "-t", "gsm8k")
SLOW = json.dumps({"gsm8k": [{"sleep": 30}]})


def echoing(*names: str) -> str:
    return json.dumps({"gsm8k": [{"echo_env": name} for name in names]})


def log_of(user) -> str:
    return (user.results / "gsm8k/harness.log").read_text()


def test_secrets_of_the_host_that_the_job_did_not_ask_for_reach_none_of_its_processes(user):
    user.evaluate("-b", "local_eval_direct", "-t", "gsm8k", HOST_SECRET_TOKEN="canary-of-the-host", FAKE_HARNESS=SLOW)
    pid = json.loads(user("jobs", "status", "--json").stdout)["backend_id"]
    environ = Path(f"/proc/{pid}/environ").read_bytes()
    user("jobs", "cancel", json.loads(user("jobs", "list", "--json").stdout)[0]["id"])
    assert TOKEN.encode() in environ and b"canary-of-the-host" not in environ


def test_those_it_asked_for_arrive_and_are_masked_in_the_log(user):
    done = user.evaluate(*HERE, FAKE_HARNESS=echoing("ENDPOINT_TOKEN"))
    assert "***" in log_of(user) and TOKEN not in log_of(user) + done.stdout


def test_no_process_has_a_secret_among_its_arguments(user):
    user.evaluate("-b", "local_eval_direct", "-t", "gsm8k", FAKE_HARNESS=SLOW)
    arguments = b"".join(read(path) for path in Path("/proc").glob("[0-9]*/cmdline"))
    user("jobs", "cancel", json.loads(user("jobs", "list", "--json").stdout)[0]["id"])
    assert str(user.folder).encode() in arguments and TOKEN.encode() not in arguments


def read(path: Path) -> bytes:
    """Processes end while one looks."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_the_commands_of_the_chosen_python_come_first(user):
    user.evaluate(*HERE, FAKE_HARNESS=echoing("PATH"))
    assert f"{user.folder / 'harness/bin'}:" in log_of(user)


def test_variables_of_the_suite_arrive(user):
    user.evaluate(*HERE, "run.env.env_vars={MINE: of-the-suite}", FAKE_HARNESS=echoing("MINE"))
    assert "of-the-suite" in log_of(user)


def test_nothing_of_an_attached_job_stays_behind(user):
    user.evaluate(*HERE)
    assert not (user.folder / "records").exists()
