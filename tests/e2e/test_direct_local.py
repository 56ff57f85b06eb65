"""The main job on this machine, whole: suite, plan, real runner, our own harness, an endpoint."""

import json
from pathlib import Path

import jsonschema
import pytest

from nemo_evaluator.demo.server import MODEL
from tests.launcher.nemotron_process import ROOT, User
from tests.launcher.world import TOKEN
from tests.nel import ServerProcess

pytestmark = pytest.mark.timeout(600)
SCHEMAS = ROOT / "harness/nemo_evaluator/schemas"
CANARY = "canary-token-that-nobody-may-see"


@pytest.fixture
def asking(user: User, server: ServerProcess) -> User:
    """With the harness of this very environment, and the server as endpoint."""
    (user.folder / "env.toml").write_text('[local_eval_direct]\nexecutor = "local"\n')
    user.environ |= {"EVAL_ENDPOINT_URL": f"{server.root}/v1/completions", "EVAL_MODEL_HANDLE": "fake-model"}
    return user


def evaluate(user: User, *words: str, **environ: str):
    return user("steps", "run", "eval/model_eval", "-c", "quickstart", *words, **environ)


def valid(path: Path, schema: str) -> dict:
    document = json.loads(path.read_text())
    jsonschema.validate(document, json.loads((SCHEMAS / f"{schema}.schema.json").read_text()))
    return document


def test_the_quickstart_suite_leaves_results_that_can_be_cited(asking):
    done = evaluate(asking)
    assert done.returncode == 0, done.stdout + done.stderr
    assert valid(asking.results / "summary.json", "summary") == {"tiny_arithmetic": "ok", "tiny_choice": "ok"}
    manifest = valid(asking.results / "run_manifest.json", "run_manifest")
    assert manifest["model"]["id"] == "fake-model" and manifest["harness"]["image"] is None
    assert (asking.results / "tiny_arithmetic/results.yml").exists()


def test_a_limit_asks_only_the_first_samples(asking, server):
    evaluate(asking, "-t", "tiny_arithmetic", "preflight=false", EVAL_LIMIT_SAMPLES="3")
    assert len(server.log()) == 3


def test_a_checkpoint_loop_takes_a_folder_for_each(asking):
    for checkpoint in ("run-a", "run-b"):
        done = evaluate(asking, "-t", "tiny_choice", EVAL_RESULTS_DIR=str(asking.folder / checkpoint))
        assert done.returncode == 0, done.stderr
        assert json.loads((asking.folder / checkpoint / "summary.json").read_text()) == {"tiny_choice": "ok"}


def test_detached_it_is_looked_at_first_and_waited_for(asking):
    wrong = evaluate(asking, "-b", "local_eval_direct", EVAL_MODEL_HANDLE="fake-modell")
    assert wrong.returncode == 2 and "'fake-model'" in wrong.stderr
    assert not asking.results.exists()
    assert evaluate(asking, "-b", "local_eval_direct").returncode == 0
    assert asking("jobs", "wait").returncode == 0


def test_resuming_what_is_finished_asks_nothing(asking, server):
    evaluate(asking)
    before = len(server.log())
    assert evaluate(asking, "resume=true", "preflight=false").returncode == 0
    assert len(server.log()) == before


@pytest.mark.parametrize("words", [["-d"], [], ["dry_run=true"], ["-b", "local_eval_direct"]])
def test_a_token_is_found_nowhere_but_in_the_environment(asking, words):
    done = evaluate(asking, *words, ENDPOINT_TOKEN=CANARY)
    if "-b" in words:
        asking("jobs", "wait")
    assert CANARY not in done.stdout + done.stderr
    assert not [path for path in asking.folder.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]


def test_the_token_reaches_the_endpoint(asking, server):
    server.control(api_key=TOKEN)
    assert evaluate(asking, "-t", "tiny_choice").returncode == 0
    refused = evaluate(asking, "-t", "tiny_choice", "output_dir=other", ENDPOINT_TOKEN=CANARY)
    assert refused.returncode != 0 and "ENDPOINT_TOKEN" in refused.stderr
    assert CANARY not in refused.stdout + refused.stderr


@pytest.mark.model
def test_the_quickstart_suite_runs_on_a_real_model(user, model_url):
    (user.folder / "env.toml").write_text("")
    user.environ |= {"EVAL_ENDPOINT_URL": f"{model_url}/completions", "EVAL_MODEL_HANDLE": MODEL}
    done = evaluate(user, EVAL_API_KEY_NAME="null", EVAL_LIMIT_SAMPLES="8")
    assert done.returncode == 0, done.stdout + done.stderr
    assert user.summary() == {"tiny_arithmetic": "ok", "tiny_choice": "ok"}
