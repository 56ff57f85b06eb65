"""One token through every path of direct mode: it is in the environment of those who need it, and nowhere else."""

import base64
import contextlib
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.launcher.nemotron_process import User
from tests.nel import ServerProcess

CANARY = "sk-not-a-real-key-canary+/=0123456789"
FORMS = {CANARY, quote(CANARY, safe=""), quote(CANARY), base64.b64encode(CANARY.encode()).decode().rstrip("=")}
ADAPTER = "evaluation.nemo_evaluator_config.target.api_endpoint.adapter_config"
VERBOSE = [f"{ADAPTER}.{key}=true" for key in ("save_requests", "save_responses", "log_failed_requests")]
ECHO = {"status": 401, "body": {"error": {"message": f"Incorrect API key provided: {CANARY}"}}}


class Watched:
    """Runs commands, and looks at what they print, at the command lines of the machine, and at every file."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.environ = {"ENDPOINT_TOKEN": CANARY, "HYDRA_FULL_ERROR": "1", "EVAL_LIMIT_SAMPLES": "3"}

    def __call__(self, *words: str, code: int, **environ: str) -> str:
        process = self.user.start(*words, **self.environ | environ)
        try:
            while process.poll() is None:
                self.look_at_command_lines()
                time.sleep(0.1)
            said = process.stdout.read()
        finally:
            process.kill()
            process.communicate()
        assert process.returncode == code, said
        assert not shown(said), said
        self.look_at_files()
        return said

    def evaluate(self, *words: str, code: int = 0, **environ: str) -> str:
        return self(
            "steps", "run", "eval/model_eval", "-c", "quickstart", "-t", "tiny_choice", *words, code=code, **environ
        )

    def look_at_command_lines(self) -> None:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):  # it has ended
                assert not shown(path.read_bytes().decode("utf-8", "replace"))

    def look_at_files(self) -> None:
        files = [path for path in self.user.folder.rglob("*") if path.is_file()]
        assert not [path for path in files if shown(path.read_bytes().decode("utf-8", "replace"))]


def shown(text: str) -> list[str]:
    return [form for form in FORMS if form in text]


@pytest.fixture
def watched(user: User, server: ServerProcess) -> Watched:
    server.control(api_key=CANARY, model="fake-model")
    (user.folder / "env.toml").write_text('[local_eval_direct]\nexecutor = "local"\n')
    user.environ |= {"EVAL_ENDPOINT_URL": f"{server.root}/v1/completions", "EVAL_MODEL_HANDLE": "fake-model"}
    return Watched(user)


@pytest.mark.timeout(600)
def test_the_token_is_found_nowhere_on_any_path(watched, server):
    assert '"ENDPOINT_TOKEN"' in watched.evaluate("-d")
    watched.evaluate("dry_run=true")
    watched.evaluate(*VERBOSE)
    assert len(server.log()) >= 3, "the endpoint takes only who brings the token"
    submitted = watched.evaluate("-b", "local_eval_direct", *VERBOSE, EVAL_RESULTS_DIR="detached")
    job = submitted.split("Submitted job ")[1].split()[0]
    watched("jobs", "wait", job, code=0)
    for words in (("list",), ("status", job), ("logs", job)):
        watched("jobs", *words, code=0)

    watched.evaluate("preflght=true", code=2)
    watched.evaluate(code=2, EVAL_API_KEY_NAME=CANARY)
    watched.evaluate(code=2, EVAL_RESULTS_DIR="no-such-model", EVAL_MODEL_HANDLE="fake-modl")

    server.control(api_key=None, behaviours=[ECHO])
    for words in ((), ("-b", "local_eval_direct")):
        said = watched.evaluate(*words, code=2, EVAL_RESULTS_DIR="refused")
        assert "Incorrect API key provided: ***" in said
    watched.evaluate(*VERBOSE, "preflight=false", code=1, EVAL_RESULTS_DIR="failed")
    failures = (watched.user.folder / "failed/failures.txt").read_text()
    assert "tiny_choice: failed" in failures


@pytest.mark.timeout(600)
def test_an_address_that_is_a_secret_is_found_nowhere_either(watched, server):
    """Userinfo and query are as good as a token."""
    server.control(api_key=None)
    address = server.root.replace("://", f"://user:{quote(CANARY, safe='')}@")
    for words in (["-d"], ["dry_run=true"], ["preflight=false", *VERBOSE]):
        watched.evaluate(*words, EVAL_ENDPOINT_URL=f"{address}/v1/completions?key=abc", EVAL_API_KEY_NAME="null")
    written = [path for path in Path(watched.user.results).rglob("*") if path.is_file()]
    assert written and not [path for path in written if b"key=abc" in path.read_bytes()]
