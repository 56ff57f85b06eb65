"""The runner as a job starts it: a zip application, a plan, a harness on PATH, signals."""

import json
import os
import signal
import time
from urllib.parse import quote

import pytest

from tests.harness.direct.world import (
    DIGEST,
    TOKEN,
    finish,
    is_running,
    plan_document,
    task_document,
    validate,
    wait_for,
)

pytestmark = pytest.mark.timeout(600)


def test_runs_every_task_and_says_where_the_results_are(world):
    done = world.run("gsm8k", "hellaswag")
    assert done.code == 0, done.err
    assert world.summary() == {"gsm8k": "ok", "hellaswag": "ok"}
    assert (world.output / "hellaswag/results_2026.json").exists()
    lines = done.out.splitlines()
    assert lines[0] == f"eval_manifest: {world.output / 'run_manifest.json'}"
    assert lines[1].startswith(f"[gsm8k] {world.command} run_eval --eval_type gsm8k")
    assert lines[-4:] == [
        f"eval_results: {world.output}",
        f"eval_summary: {world.output / 'summary.json'}",
        "  gsm8k: ok",
        "  hellaswag: ok",
    ]
    assert not (world.output / "failures.txt").exists()
    assert not (world.output / ".nemotron-eval.lock").exists()


def test_a_failed_task_does_not_keep_the_others_from_running(world):
    behaviour = {"gsm8k": [{"print": "what went wrong"}, {"exit": 3}]}
    done = world.run("gsm8k", "hellaswag", behaviour=behaviour)
    assert done.code == 1
    assert world.summary() == {"gsm8k": "failed(3)", "hellaswag": "ok"}
    failures = (world.output / "failures.txt").read_text()
    assert "gsm8k: failed(3)" in failures and "what went wrong" in failures and "hellaswag" not in failures


def test_the_tail_of_a_long_log_is_bounded_and_starts_with_a_whole_line(world):
    behaviour = {"gsm8k": [{"lines": 9000}, {"exit": 1}]}
    world.run(behaviour=behaviour)
    failures = (world.output / "failures.txt").read_text().splitlines()
    assert sum(map(len, failures)) < 10_000
    assert all(line.startswith("line ") for line in failures[1:]) and failures[-1] == "line 8999 end"


def test_a_harness_killed_by_a_signal_is_told_as_a_shell_tells_it(world):
    process = world.start(behaviour={"gsm8k": [{"sleep": 60}]})
    wait_for(lambda: (world.output / "gsm8k/calls.jsonl").exists())
    os.kill(world.calls()[0]["pid"], signal.SIGKILL)
    assert finish(process).code == 1
    assert world.summary() == {"gsm8k": "failed(137)"}


def test_the_harness_stopped_by_somebody_else_is_not_ok_though_it_says_0(world):
    process = world.start(behaviour={"gsm8k": [{"sleep": 60}]})
    wait_for(lambda: "running" in log_so_far(world))
    os.kill(world.calls()[0]["pid"], signal.SIGTERM)
    assert finish(process).code == 1
    assert world.summary() == {"gsm8k": "failed(143)"}


def test_the_manifest_is_complete_before_the_first_task(world):
    process = world.start(behaviour={"gsm8k": [{"sleep": 60}]})
    wait_for(lambda: "running" in log_so_far(world))
    manifest = validate("run_manifest", world.read("run_manifest.json"))
    process.terminate()
    finish(process)
    assert manifest["harness"]["image_pinned_by_digest"] is True
    assert "pip" in manifest["harness"]["packages"]
    assert manifest["tasks"]["gsm8k"]["params"]["limit_samples"] == 5
    assert manifest["tasks"]["gsm8k"]["adapter_config"]["output_dir"] == str(world.output / "gsm8k/adapter")
    assert "--eval_type gsm8k" in manifest["tasks"]["gsm8k"]["command"]
    assert manifest["summary_path"] == str(world.output / "summary.json")


@pytest.mark.parametrize("image", [None, "registry.example/harness:26.03", f"registry.example/harness@{DIGEST[:-1]}"])
def test_only_a_whole_digest_counts_as_pinned(world, image):
    harness = plan_document("/")["harness"] | {"image": image, "image_pinned_by_digest": True}
    world.run(harness=harness)
    assert world.read("run_manifest.json")["harness"]["image_pinned_by_digest"] is False


def test_values_that_a_comma_separated_list_would_spoil_reach_the_harness(world):
    extra = {"args": '--a "x,y" --b=c', "dotted.key": 1, "list": [1, "two"], "digits": "26.03"}
    world.run(task_document("gsm8k", {"temperature": 1e-07, "top_p": None, "extra": extra}))
    call = world.calls()[0]
    overrides = call["argv"][call["argv"].index("--overrides") + 1]
    assert "config.params.temperature=1.0e-07" in overrides and "top_p" not in overrides and "args" not in overrides
    assert '"dotted.key": 1' in call["run_config"] and '\\"x,y\\"' in call["run_config"]


def test_the_harness_gets_the_token_also_under_the_name_that_some_read(world):
    world.run(environ={"NO_PROXY": "example.org"})
    assert world.calls()[0]["same_key"]


def test_a_key_that_is_set_already_stays(world):
    world.run(environ={"OPENAI_API_KEY": "sk-not-a-real-key-either"})
    assert not world.calls()[0]["same_key"]


def test_the_harness_sees_no_secret_that_the_plan_does_not_name(world):
    others = {"AWS_SECRET_ACCESS_KEY": "x" * 20, "WANDB_API_KEY": "y" * 20, "EVAL_API_KEY_NAME": "ENDPOINT_TOKEN"}
    world.run(environ=others)
    seen = world.calls()[0]["environment"]
    assert "AWS_SECRET_ACCESS_KEY" not in seen and "WANDB_API_KEY" not in seen
    assert {"ENDPOINT_TOKEN", "EVAL_API_KEY_NAME", "PYTHONNOUSERSITE"} <= set(seen)


def test_the_harness_finds_its_own_commands_before_those_of_another_python(world):
    other = world.root / "other"
    other.mkdir()
    (other / "python3").write_text("#!/bin/sh\nexit 9\n")
    (other / "python3").chmod(0o755)
    done = world.run(environ={"PATH": f"{other}:{world.environ['PATH']}"})
    assert done.code == 0, done.err
    assert world.calls()[0]["path"].startswith(f"{world.command.parent}:")
    assert world.calls()[0]["argv"][0] == str(world.command)


def test_no_secret_reaches_a_file_or_our_output(world):
    steps = [{"echo_env": "ENDPOINT_TOKEN"}, {"print": f"url?key={quote(TOKEN, safe='')}"}, {"exit": 1}]
    done = world.run(behaviour={"gsm8k": steps})
    written = world.everything_written()
    assert TOKEN.encode() not in written and b"sk-not-a-real-key%2F" not in written
    assert TOKEN not in done.out + done.err
    assert world.log().splitlines()[1:] == ["***", "url?key=***"]


def test_a_secret_split_over_two_writes_is_masked(world):
    token = TOKEN.encode()
    steps = [{"bytes": token[:9].hex()}, {"sleep": 0.3}, {"bytes": token[9:].hex()}]
    world.run(behaviour={"gsm8k": steps})
    assert world.log() == "running gsm8k\n***"


def test_any_bytes_and_endless_lines_are_copied_as_they_are(world):
    world.run(behaviour={"gsm8k": [{"bytes": "ff00fe0d80"}, {"fill": 3_000_000}]})
    log = (world.output / "gsm8k/harness.log").read_bytes()
    assert log == b"running gsm8k\n\xff\x00\xfe\r\x80" + b"x" * 3_000_000 + b"\n"


def test_output_appears_while_the_task_runs(world):
    process = world.start(behaviour={"gsm8k": [{"print": "early"}, {"sleep": 60}]})
    wait_for(lambda: "early" in log_so_far(world))
    assert any(b"early" in process.stdout.readline() for _ in range(5))
    process.terminate()
    finish(process)


def test_a_reader_that_has_gone_does_not_end_the_run(world):
    process = world.start(behaviour={"gsm8k": [{"print": "x" * 10_000}, {"sleep": 0.3}, {"print": "last"}]})
    process.stdout.close()
    assert process.wait(timeout=300) == 0
    process.stderr.close()
    assert world.log().endswith("last\n")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 75), (signal.SIGUSR1, 75), (signal.SIGHUP, 75), (signal.SIGINT, 130)]
)
def test_stopping_ends_the_harness_and_keeps_what_is_there(world, number, code):
    behaviour = {"hellaswag": [{"fork": 60}, {"sleep": 60}]}
    process = world.start("gsm8k", "hellaswag", "ifeval", behaviour=behaviour)
    wait_for(lambda: "child" in log_so_far(world, "hellaswag"))
    process.send_signal(number)
    done = finish(process)
    assert done.code == code, done.err
    assert world.summary() == {"gsm8k": "ok"}
    progress = validate("direct_progress", world.read("progress.json"))
    assert (progress["state"], progress["task"], progress["tasks_done"]) == ("stopped", "hellaswag", 1)
    assert not (world.output / ".nemotron-eval.lock").exists()
    assert not is_running(int(world.log("hellaswag").partition("child ")[2].split()[0]))
    assert not (world.output / "ifeval/calls.jsonl").exists()


def test_a_harness_that_will_not_stop_is_killed(world):
    process = world.start(behaviour={"gsm8k": [{"ignore_term": True}, {"print": "deaf"}, {"sleep": 60}]})
    wait_for(lambda: "deaf" in log_so_far(world))
    process.terminate()
    wait_for(lambda: world.read("progress.json")["state"] == "stopped")  # if we are killed now, this is on record
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)  # told again, by hand: at once
    assert finish(process).code == 75
    assert not is_running(world.calls()[0]["pid"])


def test_a_process_that_left_the_group_does_not_hold_up_the_run(world):
    began = time.monotonic()
    done = world.run(behaviour={"gsm8k": [{"escape": 30}]})
    assert done.code == 0 and time.monotonic() - began < 25


def test_what_a_finished_harness_leaves_running_is_ended(world):
    world.run(behaviour={"gsm8k": [{"fork": 60}]})
    assert not is_running(int(world.log().partition("child ")[2].split()[0]))


def test_resume_keeps_what_is_ok_goes_on_with_the_interrupted_and_repeats_the_failed(world):
    behaviour = {"hellaswag": [{"exit": 1}], "ifeval": [{"answer": 200}]}
    process = world.start("gsm8k", "hellaswag", "ifeval", behaviour=behaviour)
    wait_for(lambda: "asked 5" in log_so_far(world, "ifeval"))
    process.terminate()
    assert finish(process).code == 75
    done = world.run("gsm8k", "hellaswag", "ifeval", behaviour={"ifeval": [{"answer": 20}]}, resume=True)
    assert done.code == 0, done.err
    assert world.summary() == {"gsm8k": "ok", "hellaswag": "ok", "ifeval": "ok"}
    assert [len(world.calls(task)) for task in ("gsm8k", "hellaswag", "ifeval")] == [1, 2, 2]
    asked = [line for line in world.log("ifeval").splitlines() if line.startswith("asked")]
    assert len(asked) == len(set(asked))
    assert not (world.output / "failures.txt").exists()


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.2, 0.3, 0.5, 0.8])
def test_killed_at_any_moment_it_leaves_whole_files_and_the_same_job_goes_on(world, seconds):
    job = {"SLURM_JOB_ID": "4711"}
    process = world.start("gsm8k", "ifeval", behaviour={"ifeval": [{"answer": 1000}]}, environ=job)
    wait_for(lambda: (world.output / "progress.json").exists())
    time.sleep(seconds)
    process.kill()
    finish(process)
    for path in world.output.glob("*.json"):
        json.loads(path.read_text())
    json.loads((world.output / ".nemotron-eval.lock").read_text())
    done = world.run("gsm8k", "ifeval", behaviour={"ifeval": [{"answer": 60}]}, environ=job)
    assert done.code == 0, done.err
    assert world.summary() == {"gsm8k": "ok", "ifeval": "ok"}
    answers = (world.output / "ifeval/adapter/cache").read_text().splitlines()
    assert len(answers) == len(set(answers)) >= 60


def test_the_harness_of_a_killed_runner_is_ended_before_another_begins(world):
    process = world.start(behaviour={"gsm8k": [{"sleep": 60}]})
    wait_for(lambda: "running" in log_so_far(world))
    process.kill()
    finish(process)
    orphan = world.calls()[0]["pid"]
    assert is_running(orphan)
    assert world.run(resume=True).code == 0
    assert not is_running(orphan)


def test_an_interrupted_replacement_is_done_again_and_mixes_nothing(world):
    world.run("gsm8k", "ifeval")
    (world.output / "progress.json").write_text(json.dumps({"state": "starting", "job": "slurm:7"}))
    done = world.run("gsm8k", "ifeval", overwrite=True, environ={"SLURM_JOB_ID": "7"})
    assert done.code == 0, done.err
    assert len(world.calls("gsm8k")) == len(world.calls("ifeval")) == 1


def test_a_restarted_job_does_not_replace_its_own_results(world):
    process = world.start("gsm8k", "ifeval", behaviour={"ifeval": [{"sleep": 60}]}, overwrite=True, environ=SLURM)
    wait_for(lambda: "running" in log_so_far(world, "ifeval"))
    process.terminate()
    assert finish(process).code == 75
    assert world.run("gsm8k", "ifeval", overwrite=True, environ=SLURM).code == 0
    assert [len(world.calls(task)) for task in ("gsm8k", "ifeval")] == [1, 2]


def test_overwrite_replaces_the_folders_of_its_tasks_and_no_other(world):
    world.run("gsm8k", "ifeval")
    (world.output / "gsm8k/old").write_text("old")
    assert world.run("gsm8k", overwrite=True).code == 0
    assert not (world.output / "gsm8k/old").exists() and len(world.calls()) == 1
    assert world.summary() == {"gsm8k": "ok", "ifeval": "ok"}
    assert set(world.read("run_manifest.json")["tasks"]) == {"gsm8k", "ifeval"}


def test_a_dry_run_writes_its_own_two_files_and_touches_nothing_else(world):
    world.run("ifeval")
    before = {path: path.stat().st_mtime_ns for path in world.output.rglob("*") if path.is_file()}
    done = world.run("gsm8k", dry_run=True)
    assert done.code == 0 and "[gsm8k] " in done.out
    after = {path: path.stat().st_mtime_ns for path in world.output.rglob("*") if path.is_file()}
    assert {path.name for path in after.keys() - before.keys()} == {"run_manifest.dry-run.json", "summary.dry-run.json"}
    assert {path: after[path] for path in before} == before
    assert validate("run_manifest", world.read("run_manifest.dry-run.json"))["dry_run"] is True
    validate("summary", world.read("summary.dry-run.json"))


def test_a_full_disk_is_told_in_one_line_and_what_was_written_stays(world):
    """A limit on the size of files stands for the full disk: the write fails in the same place."""
    limited = world.python
    world.python = "/bin/sh"
    world.runner = write_limiter(world, limited)
    done = world.run("gsm8k", "ifeval", behaviour={"ifeval": [{"fill": 3_000_000}]})
    assert done.code == 1
    assert done.err.count("\n") == 1 and "harness.log cannot be written" in done.err and "resume=true" in done.err
    assert world.summary() == {"gsm8k": "ok"}


def write_limiter(world, python):
    script = world.root / "limited.sh"
    script.write_text(f'ulimit -f 2000\nexec {python} {world.runner} "$1"\n')
    return script


def test_only_one_task_of_a_slurm_step_runs_the_evaluation(world):
    done = world.run(environ={"SLURM_PROCID": "1"})
    assert done.code == 0 and "task 0" in done.out
    assert not world.output.exists()


def test_what_the_preflight_finds_ends_the_run_before_anything_is_touched(world):
    world.run()
    (world.output / "gsm8k/mark").write_text("kept")
    done = world.run("mmlu_prox_completions", "gsm8k", preflight=True, overwrite=True, model={"endpoint_url": NOWHERE})
    assert done.code == 2
    assert len(done.err.splitlines()) == 2 and all(line.startswith("Error: ") for line in done.err.splitlines())
    assert (world.output / "gsm8k/mark").read_text() == "kept" and world.summary() == {"gsm8k": "ok"}


def test_told_to_stop_while_it_waits_for_the_endpoint_it_has_begun_nothing(world):
    process = world.start(preflight=True)  # nobody listens at that address
    assert b"not ready yet (Connection refused), waiting" in process.stdout.readline()
    process.terminate()
    assert finish(process).code == 75
    assert not world.output.exists()


def test_of_many_that_start_at_once_one_runs(world):
    processes = [world.start(behaviour={"gsm8k": [{"sleep": 3}]}) for _ in range(6)]
    done = [finish(process) for process in processes]
    assert sorted(each.code for each in done) == [0, 2, 2, 2, 2, 2]
    assert world.summary() == {"gsm8k": "ok"} and len(world.calls()) == 1


NOWHERE = "http://none.invalid/v1/completions"
SLURM = {"SLURM_JOB_ID": "42"}


def log_so_far(world, task="gsm8k"):
    path = world.output / task / "harness.log"
    return path.read_text(errors="replace") if path.exists() else ""
