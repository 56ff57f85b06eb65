import json
import os
import pty
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

SUITE = """
services:
  model:
    type: api
    url: {url}
    protocol: chat_completions
    model: fake-model
    api_key: ${{CANARY:-}}
    generation: {{temperature: 0.0, max_tokens: 100, seed: 5}}
benchmarks:
  - name: tiny_arithmetic
    max_problems: 6
    solver: {{type: simple, service: model}}
  - name: tiny_choice
    max_problems: 6
    solver: {{type: simple, service: model}}
"""


@pytest.fixture
def suite(nel, server):
    path = nel.folder / "suite.yaml"
    path.write_text(SUITE.format(url=server.url))
    return path


def test_a_benchmark_by_name(nel, quick):
    done = nel("eval", "run", *quick)
    bundle = nel.bundle()
    assert bundle["status"] == "completed" and bundle["n_results"] == 60
    assert re.search(r"tiny_arithmetic: pass@1 0\.\d+ \[95 % CI 0\.\d+, 0\.\d+\]", done.stdout)
    assert "60 samples, scored 60, errors 0" in done.stdout
    assert "/v1/chat/completions" in done.stdout


@pytest.mark.parametrize("suffix", ["", "/", "/chat/completions", "/chat/completions/"])
def test_the_url_may_be_written_in_any_usual_way(nel, server, suffix):
    nel(
        "eval", "run", "-b", "tiny_choice", "--max-problems", "1", "--model-url", server.url + suffix, "--model-id", "m"
    )
    assert [request["path"] for request in server.log()] == ["/v1/chat/completions"]


def test_a_completions_url_asks_for_completions(nel, server):
    nel(
        "eval",
        "run",
        "-b",
        "tiny_choice",
        "--max-problems",
        "1",
        "--model-url",
        server.url + "/completions",
        "--model-id",
        "m",
    )
    assert [request["path"] for request in server.log()] == ["/v1/completions"]


def test_every_flag_reaches_the_request(nel, quick, server):
    flags = [
        "--temperature",
        "0.5",
        "--max-tokens",
        "9",
        "--system-prompt",
        "Be brief.",
        "-n",
        "2",
        "--max-problems",
        "3",
    ]
    nel("eval", "run", *quick, *flags, "--api-key", "sk-not-a-real-key", "-o", "out")
    bodies = [request["body"] for request in server.log()]
    assert len(bodies) == 6
    assert {(body["temperature"], body["max_tokens"], body["model"]) for body in bodies} == {(0.5, 9, "fake-model")}
    assert bodies[0]["messages"][0] == {"role": "system", "content": "Be brief."}
    assert server.log()[0]["headers"]["authorization"] == "Bearer sk-not-a-real-key"
    assert nel.bundle("out/tiny_arithmetic")["n_results"] == 6


def test_nothing_is_sent_that_was_not_asked_for(nel, quick, server):
    nel("eval", "run", *quick, "--max-problems", "1")
    assert set(server.log()[0]["body"]) == {"model", "messages"}
    assert "authorization" not in server.log()[0]["headers"]


def test_the_endpoint_may_come_from_the_environment(nel, server):
    environ = {"NEMO_MODEL_URL": server.url, "NEMO_MODEL_ID": "m", "NEMO_API_KEY": "sk-not-a-real-key"}
    nel("eval", "run", "-b", "tiny_choice", "--max-problems", "1", **environ)
    assert server.log()[0]["headers"]["authorization"] == "Bearer sk-not-a-real-key"


def test_benchmarks_of_a_suite_run_side_by_side(nel, suite, server):
    """7.5 item 67: the tail of one used to idle the endpoint for the next."""
    server.control(behaviours=[{"delay": 0.3}])
    two_at_once = [part for index in (0, 1) for part in ("-O", f"benchmarks[{index}].max_concurrent=2")]
    done = nel("eval", "run", str(suite), *two_at_once)
    first_half = ["letter" in str(request["body"]) for request in server.log()[:6]]
    assert any(first_half) and not all(first_half)
    assert done.stdout.count("95 % CI") == 2


def test_the_same_benchmark_twice_is_two_benchmarks(nel, suite, server):
    """7.1 item 4."""
    config = yaml.safe_load(suite.read_text())
    entry = config["benchmarks"][0]
    hot = {**entry, "solver": {**entry["solver"], "generation": {"temperature": 1.0}}}
    suite.write_text(yaml.safe_dump(config | {"benchmarks": [entry, hot]}))
    nel("eval", "run", str(suite))
    temperatures = [
        nel.bundle(f"eval_results/{name}")["provenance"]["solver"]["generation"]["temperature"]
        for name in ("tiny_arithmetic", "tiny_arithmetic_2")
    ]
    assert temperatures == [0.0, 1.0] and len(server.log()) == 12


def test_the_solvers_generation_wins_over_the_services(nel, suite, server):
    """7.1 item 2."""
    config = yaml.safe_load(suite.read_text())
    config["benchmarks"][0]["solver"]["generation"] = {"temperature": 0.9}
    suite.write_text(yaml.safe_dump(config))
    nel("eval", "run", str(suite), "-b", "tiny_arithmetic")
    assert {(b["body"]["temperature"], b["body"]["max_tokens"]) for b in server.log()} == {(0.9, 100)}


def test_flags_apply_beside_a_config_file(nel, suite, server):
    """7.7 item 79, CF-06."""
    nel("eval", "run", str(suite), "--max-problems", "2", "--temperature", "0.3", "-n", "2", "-o", "elsewhere")
    assert len(server.log()) == 8 and {r["body"]["temperature"] for r in server.log()} == {0.3}
    assert nel.bundle("elsewhere/tiny_choice")["n_results"] == 4


def test_overrides_apply(nel, suite, server):
    nel(
        "eval",
        "run",
        str(suite),
        "-O",
        "benchmarks[0].max_problems=1",
        "-O",
        'services.model.generation.stop=["a b", "c"]',
    )
    assert len(server.log()) == 7 and server.log()[0]["body"]["stop"] == ["a b", "c"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], ["--bench"]),
        (["-b", "tiny_arithmetic"], ["--model-url"]),
        (
            ["-b", "tiny_aritmetic", "--model-url", "http://127.0.0.1:1", "--model-id", "m"],
            ["tiny_aritmetic", "tiny_arithmetic"],
        ),
        (["missing.yaml"], ["missing.yaml"]),
        (["-b", "tiny_choice", "--model-url", "ftp://x", "--model-id", "m"], ["ftp://x"]),
        (["-b", "tiny_choice", "--model-url", "http://127.0.0.1:1", "--model-id", "m", "--submit"], ["--submit"]),
        (
            ["-b", "tiny_choice", "--model-url", "http://127.0.0.1:1", "--model-id", "m", "--resume", "--overwrite"],
            ["--resume"],
        ),
        (
            ["-b", "tiny_choice", "--model-url", "http://127.0.0.1:1", "--model-id", "m", "-O", "benchmark.x=1"],
            ["benchmark"],
        ),
        (["-b", "gym://x", "--model-url", "http://127.0.0.1:1", "--model-id", "m"], ["gym://"]),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(nel, arguments, named):
    done = nel("eval", "run", *arguments, code=2)
    message = done.stderr.strip().splitlines()
    assert len(message) == 1 and message[0].startswith("Error: ")
    assert all(word in message[0] for word in named)
    assert not (nel.folder / "eval_results").exists()


def test_an_unknown_key_names_the_nearest_and_the_line(nel, suite):
    suite.write_text(suite.read_text().replace("max_problems: 6", "max_problem: 6", 1))
    done = nel("eval", "run", str(suite), code=2)
    line = suite.read_text().splitlines().index("    max_problem: 6") + 1
    assert f"suite.yaml:{line}" in done.stderr and "max_problems" in done.stderr


def test_a_refused_token_is_one_line_and_exit_code_1(nel, quick, server):
    """7.1 item 11."""
    server.control(api_key="sk-not-a-real-key")
    done = nel("eval", "run", *quick, "--api-key", "sk-canary-0123456789", code=1)
    assert len(server.log()) <= 40
    errors = [line for line in done.stderr.splitlines() if line.startswith("Error:")]
    assert len(errors) == 1 and "401" in errors[0] and "NEMO_API_KEY" in errors[0]
    assert "  FAILED\n" in done.stdout and "401" not in done.stdout  # a terminal shows both: the reason once
    assert nel.bundle()["status"] == "failed"
    assert "sk-canary" not in done.stdout + done.stderr


def test_a_wrong_model_name_stops_at_once_and_suggests_the_near_one(nel, server):
    """EC-29."""
    server.control(model="llama-3.1-8b")
    done = nel("eval", "run", "-b", "tiny_choice", "--model-url", server.url, "--model-id", "llama-3-8b", code=1)
    assert "llama-3.1-8b" in done.stderr


def test_too_many_errors_fail_the_run(nel, quick, server):
    server.control(behaviours=[{"status": 400}])
    done = nel("eval", "run", *quick, code=1)
    assert "60 of 60 samples ended in errors (server 60)" in done.stderr
    assert nel.bundle()["benchmark"]["scores"]["mean_reward"]["value"] is None
    nel("eval", "run", *quick, "--resume", "--max-error-rate", "1")


def test_results_are_refused_resumed_and_overwritten(nel, quick, server):
    nel("eval", "run", *quick)
    refused = nel("eval", "run", *quick, code=2)
    assert "--resume" in refused.stderr and "--overwrite" in refused.stderr
    server.control(reset_log=True)
    nel("eval", "run", *quick, "--resume")
    assert server.log() == []
    changed = nel("eval", "run", *quick, "--resume", "--temperature", "1", code=2)
    assert "temperature" in changed.stderr
    nel("eval", "run", *quick, "--overwrite", "--temperature", "1")
    assert len(server.log()) == 60


def test_dry_run_shows_the_plan_and_the_first_prompt_and_touches_nothing(nel, suite, server):
    done = nel("eval", "run", str(suite), "--dry-run", CANARY="sk-canary-0123456789")
    assert "6 samples" in done.stdout and "/v1/chat/completions" in done.stdout
    assert done.stdout.count('"messages"') == 2 and '"temperature": 0.0' in done.stdout
    assert "sk-canary" not in done.stdout + done.stderr
    assert server.log() == [] and not (nel.folder / "eval_results").exists()


def test_no_secret_reaches_a_file_or_the_screen(nel, suite, server):
    """7.6 item 71, SE-01: the key from the environment, from -O and from a flag."""
    canary = "sk-canary-0123456789"
    server.control(api_key="sk-not-a-real-key")
    outputs = [
        nel("eval", "run", str(suite), "-o", "a", code=1, CANARY=canary),
        nel("eval", "run", str(suite), "-o", "b", "-O", f"services.model.api_key={canary}", code=1),
        nel("eval", "run", str(suite), "-o", "c", "--api-key", canary, "--verbose", code=1),
    ]
    assert len({request["headers"]["authorization"] for request in server.log()}) == 1
    for done in outputs:
        assert canary not in done.stdout + done.stderr
    for path in nel.folder.rglob("*"):
        assert not path.is_file() or canary not in path.read_text(errors="replace"), path
    assert "${CANARY:-}" in (nel.folder / "a/full_config.yaml").read_text()


def test_progress_is_plain_lines_where_there_is_no_terminal(nel, quick, server):
    server.control(behaviours=[{"delay": 0.2}])
    done = nel("eval", "run", *quick, "-O", "benchmarks[0].max_concurrent=8", "-O", "output.progress_interval=0.3")
    lines = [line for line in done.stderr.splitlines() if line.startswith("tiny_arithmetic: ")]
    assert len(lines) >= 2 and re.fullmatch(
        r"tiny_arithmetic: \d+/60  score \d\.\d+  errors 0  [\d.]+/s  eta \d+ s", lines[0]
    )
    assert "\x1b" not in done.stdout + done.stderr


def test_json_is_all_there_is_on_stdout(nel, suite):
    """7.7 item 89."""
    outcomes = json.loads(nel("eval", "run", str(suite), "--json").stdout)
    assert [outcome["benchmark"] for outcome in outcomes] == ["tiny_arithmetic", "tiny_choice"]
    assert outcomes[0]["status"] == "completed" and outcomes[0]["states"] == {"scored": 6}
    assert Path(outcomes[0]["bundle"]).exists() and outcomes[0]["scores"]["mean_reward"]["n"] == 6


def test_bars_are_drawn_on_a_terminal(nel, quick, server):
    server.control(behaviours=[{"delay": 0.1}, {"status": 400, "when": {"numbers": [3]}}])
    flags = ["-O", "benchmarks[0].max_concurrent=4", "--max-error-rate", "0.5"]
    shown = in_a_terminal(nel, "eval", "run", *quick, *flags)
    assert "━" in shown and "60/60" in shown and "1 errors" in shown and re.search(r"score 0\.\d{3}", shown)
    assert shown.rstrip().splitlines()[-1].strip().endswith(".json")


def in_a_terminal(nel, *arguments):
    """What `nel` writes when it talks to a person."""
    master, slave = pty.openpty()
    environ = nel.environ | {"TERM": "xterm-256color", "COLUMNS": "140"}
    command = [sys.executable, "-m", "nemo_evaluator.cli.main", *arguments]
    with subprocess.Popen(command, cwd=nel.folder, env=environ, stdin=slave, stdout=slave, stderr=slave) as process:
        os.close(slave)
        written = b""
        with suppress(OSError):  # how Linux says that the other end has closed
            while piece := os.read(master, 65536):
                written += piece
    os.close(master)
    assert process.returncode == 0
    return written.decode()


def test_a_folder_that_cannot_be_made_is_one_line(nel, quick):
    (nel.folder / "taken").write_text("a file")
    done = nel("eval", "run", *quick, "-o", "taken", code=2)
    assert re.fullmatch(r"Error: .*/taken cannot be made \(File exists\): choose another --output-dir.\n", done.stderr)


def test_a_second_run_into_a_folder_leaves_the_first_ones_record_alone(nel, quick, server):
    """`nel eval stop` must find the one that runs, and not the one that was refused."""
    server.control(behaviours=[{"delay": 0.3}])
    first = nel.start("eval", "run", *quick, "-O", "benchmarks[0].max_concurrent=2")
    try:
        while len(server.log()) < 4:
            time.sleep(0.02)
        for flag in ("--resume", "--overwrite"):
            refused = nel("eval", "run", *quick, flag, code=2)
            assert f"is being written by process {first.pid}" in refused.stderr
        assert f": running\n  process {first.pid} on " in nel("eval", "status").stdout
    finally:
        first.terminate()
        first.communicate(timeout=180)
    assert nel.bundle()["status"] == "interrupted"


def test_a_custom_solver_is_the_users_class(nel, suite, server):
    """7.4 item 52: it used to become a chat solver in silence."""
    (nel.folder / "mine.py").write_text(
        "from nemo_evaluator.solvers import Solver, SolveResult\n"
        "class Oracle(Solver):\n"
        "    def __init__(self, client, prefix): self.client, self.prefix = client, prefix\n"
        "    async def solve(self, task): return SolveResult(f'{self.prefix} {task.expected_answer}')\n"
    )
    config = yaml.safe_load(suite.read_text())
    config["benchmarks"] = [
        {
            "name": "tiny_arithmetic",
            "solver": {
                "type": "custom",
                "service": "model",
                "class_path": "mine.py:Oracle",
                "config": {"prefix": "Answer:"},
            },
        }
    ]
    suite.write_text(yaml.safe_dump(config))
    nel("eval", "run", str(suite))
    assert nel.bundle()["benchmark"]["scores"]["mean_reward"]["value"] == 1.0 and server.log() == []


def test_a_run_into_a_full_disk_says_so_and_keeps_what_was_written(nel, quick, server):
    """RM-03."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    place = nel.folder / "small"
    place.mkdir()
    if os.system(f"mount -t tmpfs -o size=1m none {place}") != 0:
        pytest.skip("this machine cannot mount a tmpfs")
    try:
        server.control(mode="filler", size=50_000)
        done = nel("eval", "run", *quick, "-o", str(place), code=1)
        assert "No space left" in done.stderr and "--resume" in done.stderr and "Traceback" not in done.stderr
        again = nel("eval", "run", *quick, "-o", str(place), "--resume", code=1)
        assert re.search(r"Error: Cannot write .*/small/.*No space left on device.*--resume", again.stderr)
        os.system(f"mount -o remount,size=100m {place}")
        server.control(reset_log=True)
        nel("eval", "run", *quick, "-o", str(place), "--resume")
        assert 0 < len(server.log()) < 60
    finally:
        os.system(f"umount {place}")


def test_the_journal_counts_each_sample_once(nel, quick):
    nel("eval", "run", *quick)
    log = (nel.folder / "eval_results/tiny_arithmetic/inference_log.jsonl").read_text().splitlines()
    assert len([line for line in log if "problem_idx" in json.loads(line)]) == 60
