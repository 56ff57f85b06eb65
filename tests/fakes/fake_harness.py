#!/usr/bin/env python3
"""A stand-in for the `nemo-evaluator` command of a harness image: same arguments, same kind of output and files.

Standard library only: tests copy it under that name into a folder on PATH, with the interpreter under test. What it
does beyond succeeding is said in FAKE_HARNESS, JSON of task -> list of steps, carried out in order:

    {"print": TEXT}  {"bytes": HEX}  {"sleep": S}  {"exit": CODE}  {"echo_env": NAME}  {"fork": S}  {"escape": S}
    {"ignore_term": true}  {"answer": N}  {"progress": [DONE, TOTAL]}  {"fill": BYTES}  {"lines": N}  {"request": TEXT}
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

TASKS = ("gsm8k", "hellaswag", "arc_challenge", "ifeval", "mmlu_prox_completions")


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("ls")
    run = commands.add_parser("run_eval")
    for name in ("eval_type", "model_id", "model_type", "model_url", "output_dir"):
        run.add_argument("--" + name, required=True)
    for name in ("api_key_name", "run_config", "overrides"):
        run.add_argument("--" + name)
    arguments = parser.parse_args()
    if arguments.command == "ls":
        print("lm-evaluation-harness: ")
        print("\n".join("  * " + task for task in TASKS))
    else:
        evaluate(arguments)


def evaluate(arguments):
    folder = Path(arguments.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: finish_early(folder))
    record(folder, arguments)
    print("running", arguments.eval_type, flush=True)
    for step in json.loads(os.environ.get("FAKE_HARNESS", "{}")).get(arguments.eval_type, []):
        for name, value in step.items():
            STEPS[name](value, folder, arguments)
    (folder / "results_2026.json").write_text(json.dumps({"results": {arguments.eval_type: {"acc": 0.5}}}))


def finish_early(folder):
    """As the real one: a mark in the folder, and exit code 0."""
    (folder / ".nemo_evaluator_interrupted").write_text("{}")
    print("terminated", flush=True)
    os._exit(0)


def record(folder, arguments):
    """How it was called, one line a call; of secrets only whether they were there."""
    call = {
        "argv": sys.argv,
        "run_config": Path(arguments.run_config).read_text() if arguments.run_config else None,
        "environment": sorted(os.environ),
        "path": os.environ["PATH"],
        "same_key": os.environ.get("OPENAI_API_KEY") == os.environ.get(arguments.api_key_name or ""),
        "pid": os.getpid(),
        "group": os.getpgrp(),
    }
    with (folder / "calls.jsonl").open("a") as file:
        file.write(json.dumps(call) + "\n")


def answer(count, folder, _):
    """Answers that survive: the adapter's cache of the real one."""
    (folder / "adapter").mkdir(exist_ok=True)
    with (folder / "adapter" / "cache").open("a+") as cache:
        cache.seek(0)
        known = len(cache.readlines())
        for number in range(known, count):
            cache.write(f"answer {number}\n")
            cache.flush()
            print(f"asked {number}", flush=True)
            time.sleep(0.02)


def say(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def ask(text, _, arguments):
    body = json.dumps({"model": arguments.model_id, "prompt": text, "max_tokens": 4}).encode()
    headers = {"Content-Type": "application/json"}
    if arguments.api_key_name:
        headers["Authorization"] = "Bearer " + os.environ[arguments.api_key_name]
    with urllib.request.urlopen(urllib.request.Request(arguments.model_url, body, headers)) as reply:
        print("answer:", json.load(reply)["choices"][0]["text"], flush=True)


def sleeper(seconds, session):
    code = f"import time; time.sleep({seconds})"
    child = subprocess.Popen([sys.executable, "-c", code], start_new_session=session)
    print(f"child {child.pid}", flush=True)


STEPS = {
    "print": lambda text, *_: print(text, flush=True),
    "bytes": lambda text, *_: say(bytes.fromhex(text)),
    "echo_env": lambda name, *_: say(os.environ[name].encode() + b"\n"),
    "sleep": lambda seconds, *_: time.sleep(seconds),
    "exit": lambda code, *_: sys.exit(code),
    "fork": lambda seconds, *_: sleeper(seconds, session=False),
    "escape": lambda seconds, *_: sleeper(seconds, session=True),
    "ignore_term": lambda *_: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    "answer": answer,
    "progress": lambda pair, *_: say(
        b"\rRequesting API: %d%%|###   | %d/%d [00:01<00:02, 9.5it/s]\n" % (100 * pair[0] // pair[1], *pair)
    ),
    "fill": lambda size, *_: say(b"x" * size + b"\n"),
    "lines": lambda count, *_: say(b"".join(b"line %d end\n" % n for n in range(count))),
    "request": ask,
}

if __name__ == "__main__":
    main()
