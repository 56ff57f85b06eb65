"""A job to run the runner in: a fake `nemo-evaluator` on PATH, a plan, an environment, and real processes."""

import json
import os
import shutil
import subprocess
import sys
import time
import zipapp
from pathlib import Path

import jsonschema

from tests.fakes import fake_harness

PACKAGE = Path(__file__).parents[3] / "harness/nemo_evaluator"
TOKEN = "sk-not-a-real-key/with+signs"
DIGEST = "sha256:" + "ab" * 32
URL = "http://127.0.0.1:9/v1/completions"


def plan_document(output_dir, tasks=("gsm8k",), model=None, **changes):
    """A whole plan; `model` and the rest replace single values."""
    return {
        "schema_version": 1,
        "created": "2026-11-29T12:00:00+00:00",
        "mode": "direct",
        "dry_run": False,
        "output_dir": str(output_dir),
        "overwrite": False,
        "resume": False,
        "preflight": False,
        "allow_all_subsets": False,
        "model": {
            "id": "fake-model",
            "endpoint_url": URL,
            "endpoint_url_variable": None,
            "endpoint_type": "completions",
            "api_key_name": "ENDPOINT_TOKEN",
            **(model or {}),
        },
        "harness": {
            "image": f"nvcr.io/nvidia/eval-factory/lm-evaluation-harness@{DIGEST}",
            "requested_image": "nvcr.io/nvidia/eval-factory/lm-evaluation-harness:26.03",
            "image_pinned_by_digest": True,
            "index_digest": DIGEST,
            "platform_digest": None,
        },
        "code": {"nemotron_version": "0.4.0", "git_sha": None, "git_dirty": None},
        "tasks": [task_document(task) if isinstance(task, str) else task for task in tasks],
        "secrets": ["ENDPOINT_TOKEN"],
        **changes,
    }


def task_document(name, params=None, adapter_config=None):
    default = {"limit_samples": 5, "parallelism": 4, "extra": {"tokenizer": "example/small-bpe"}}
    return {
        "name": name,
        "params": default if params is None else params,
        "adapter_config": adapter_config or {},
        "datasets": [],
    }


def validate(name, document):
    schema = json.loads((PACKAGE / "schemas" / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    return document


def build_runner(target):
    """As the launcher does: the files that pack.json lists, as a zip application."""
    staged = target.with_suffix(".d")
    for name, source in json.loads((PACKAGE / "direct/pack.json").read_text()).items():
        (staged / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PACKAGE / source, staged / name)
    zipapp.create_archive(staged, target)
    shutil.rmtree(staged)
    return target


def install_harness(folder, python=sys.executable):
    folder.mkdir()
    command = folder / "nemo-evaluator"
    source = Path(fake_harness.__file__).read_text().partition("\n")[2]
    command.write_text(f"#!{python}\n{source}")
    command.chmod(0o755)
    return command


class World:
    def __init__(self, root, python=sys.executable):
        self.root = root
        self.python = str(python)
        self.output = root / "results"
        self.command = install_harness(root / "bin", python)
        self.runner = build_runner(root / "runner.pyz")
        self.environ = {
            "PATH": f"{root / 'bin'}:/usr/bin:/bin",
            "HOME": str(root),
            "ENDPOINT_TOKEN": TOKEN,
        }
        self._plans = 0

    def start(self, *tasks, behaviour=None, environ=None, **changes):
        """`behaviour` is FAKE_HARNESS: what the fake does of each task."""
        self._plans += 1
        plan = self.root / f"plan-{self._plans}.json"
        document = plan_document(self.output, tasks or ("gsm8k",), **changes)
        plan.write_text(json.dumps(document))
        return subprocess.Popen(
            [self.python, str(self.runner), str(plan)],
            env={**self.environ, "FAKE_HARNESS": json.dumps(behaviour or {}), **(environ or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.root,
        )

    def run(self, *tasks, **changes):
        return finish(self.start(*tasks, **changes))

    def read(self, name):
        return json.loads((self.output / name).read_text())

    def summary(self):
        return validate("summary", self.read("summary.json"))

    def log(self, task="gsm8k"):
        return (self.output / task / "harness.log").read_text()

    def calls(self, task="gsm8k"):
        return [json.loads(line) for line in (self.output / task / "calls.jsonl").read_text().splitlines()]

    def everything_written(self):
        return b"".join(path.read_bytes() for path in sorted(self.root.rglob("*")) if path.is_file())


class Finished:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out.decode(errors="replace"), err.decode()


def finish(process, timeout=300):
    out, err = process.communicate(timeout=timeout)
    return Finished(process.returncode, out, err)


def wait_for(condition, seconds=180.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def interpreters():
    """Every Python at hand, by its version: of pyenv, and on PATH."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [path / "bin/python" for path in sorted(pyenv.glob("3.*"))]
    candidates += [Path(found) for n in range(8, 16) if (found := shutil.which(f"python3.{n}"))]
    found = {}
    for path in candidates:
        asked = subprocess.run(
            [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True
        )
        version = asked.stdout.strip()
        if asked.returncode == 0 and tuple(map(int, version.split("."))) >= (3, 8):
            found.setdefault(version, path)
    return found
