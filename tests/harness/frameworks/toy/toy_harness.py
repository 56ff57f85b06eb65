"""Asks a few sums and writes down what it saw."""

import argparse
import json
import os
import pathlib
import sys
import time
import urllib.request

parser = argparse.ArgumentParser()
for name in ("url", "out", "model", "task", "temperature", "retries", "timeout"):
    parser.add_argument("--" + name)
parser.add_argument("--limit", type=int, default=3)
parser.add_argument("--exit", type=int, default=0)
parser.add_argument("--sleep", type=float, default=0)
parser.add_argument("--mute", action="store_true")
args = parser.parse_args()
print("toy harness speaks", flush=True)


def ask(n):
    body = json.dumps(
        {"model": args.model, "prompt": f"{args.task} {n}", "temperature": float(args.temperature)}
    ).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ.get("TOY_KEY", "")}
    with urllib.request.urlopen(urllib.request.Request(args.url, body, headers)) as reply:
        return json.load(reply)["choices"][0]["text"]


answers = [ask(n) for n in range(args.limit)]
out = pathlib.Path(args.out)
seen = {"argv": sys.argv[1:], "answers": answers, "openai": "OPENAI_API_KEY" in os.environ}
(out / "seen.json").write_text(json.dumps(seen))
time.sleep(args.sleep)
if not args.exit and not args.mute:
    (out / "scores.json").write_text(json.dumps({"right": sum(a == "42" for a in answers), "all": len(answers)}))
sys.exit(args.exit)
