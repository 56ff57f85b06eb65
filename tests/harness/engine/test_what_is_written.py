"""The files of a run: whose they are, how large, and what can be read from them in little memory."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from nemo_evaluator.engine import run_evaluation, write_all
from nemo_evaluator.engine.journal import replay
from nemo_evaluator.engine.plan import plan_attempts
from nemo_evaluator.results.find import find_bundles
from nemo_evaluator.solvers import SolveResult
from tests.harness.engine.worlds import Calculator, Doubles

ROOT = Path(__file__).parents[3]


@pytest.fixture
def umask():
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def modes(folder):
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("mask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
async def test_every_file_has_the_mode_that_the_user_chose(tmp_path, umask, mask, mode):
    """7.6 item 78: no file is opened to others, and a team that shares a folder can resume each other's runs."""
    umask(mask)
    write_all(await run_evaluation(Doubles(3), Calculator(), output_dir=tmp_path / "out"), tmp_path / "out")
    assert modes(tmp_path / "out") == {mode}


async def test_no_folder_is_opened_to_others(tmp_path, umask):
    """7.6 item 74: results used to be made readable for everyone, recursively."""
    folder = tmp_path / "mine"
    folder.mkdir(mode=0o700)
    (folder / "notes").touch(mode=0o600)
    write_all(await run_evaluation(Doubles(3), Calculator(), output_dir=folder), folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "notes").stat().st_mode) == 0o600


async def test_each_text_is_on_disk_three_times_at_most(tmp_path):
    """7.5 item 62: journal, results and trajectories; it used to be five or six times."""

    class Talkative(Calculator):
        async def solve(self, task):
            return SolveResult("An answer of some length. " * 200)

    env = Doubles(50, "A question of some length. " * 40 + "{i}")
    write_all(await run_evaluation(env, Talkative(), output_dir=tmp_path), tmp_path)
    text = sum(len(row["prompt"]) + len(row["model_response"]) for row in find_bundles(tmp_path)[0].rows())
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 3.5 * text


READ = """
import resource, sys
from nemo_evaluator.results.find import find_bundles
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 64_000_000,) * 2)
(bundle,) = find_bundles(sys.argv[1])
print(sum(row["reward"] for row in bundle.rows()))
"""


def test_rows_are_read_one_by_one_however_many_there_are(tmp_path):
    """RS-03: 400 MB of results in 64 MB; the scores themselves are in the small file beside them."""
    (tmp_path / "eval-x.json").write_text('{"benchmark": {"name": "x"}}')
    with (tmp_path / "results.jsonl").open("w") as file:
        for i in range(200):
            file.write(json.dumps({"problem_idx": i, "reward": 1, "model_response": "x" * 2_000_000}) + "\n")
    done = subprocess.run(
        [sys.executable, "-c", READ, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "200\n"


async def test_a_replay_reads_the_head_of_an_answer_only(tmp_path):
    """RM-04: that is why resuming 200,000 samples takes seconds. What stands behind the head need not even be JSON."""
    await run_evaluation(Doubles(5), Calculator(), output_dir=tmp_path)
    log = tmp_path / "inference_log.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(line.partition(b'"timestamp"')[0] + b"no JSON}\n" for line in lines))
    ledger = replay(tmp_path, plan_attempts(6)).ledger
    assert [attempt.problem_idx for attempt in ledger.to_ask()] == [5]
