"""progress.json: what a harness's output tells about how far it is."""

import json

from nemo_evaluator.direct.progress import Bars, Progress
from tests.harness.direct.world import validate

BAR = b"\rRequesting API:  45%%|####5     | %d/%d [00:01<00:02, 9.53it/s]"


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def fed(*pieces):
    bars = Bars()
    for piece in pieces:
        bars.feed(piece)
    return bars.done, bars.total


def test_a_bar_is_read_when_its_line_is_complete():
    assert fed(BAR % (9, 20), b"\r") == (9, 20)
    assert fed(BAR % (9, 20)) == (None, None)


def test_a_bar_cut_in_two_is_read():
    line = BAR % (9, 20) + b"\n"
    assert fed(line[:30], line[30:]) == (9, 20)


def test_bars_that_count_requests_win_over_others():
    checked = b"\rChecking cached requests: 100%|##| 40/40 [00:00<00:00]\n"
    assert fed(BAR % (9, 20) + b"\n", checked) == (9, 20)
    other = b"\rGenerating train split: 100%|##| 7473/7473 [00:00<00:00]\n"
    assert fed(other) == (7473, 7473)
    assert fed(other, BAR % (9, 20) + b"\n", other) == (9, 20)


def test_an_endless_line_takes_no_memory():
    bars = Bars()
    for _ in range(100):
        bars.feed(b"x" * 100_000)
    assert len(bars._rest) <= 4096


def test_lines_that_tell_of_errors_are_counted():
    bars = Bars()
    bars.feed(b"WARNING API request failed with error message: 429. Retrying...\nall fine\nERROR again\n")
    assert bars.errors == 2


def test_without_bars_the_requests_that_the_adapter_reports_are_counted(tmp_path):
    progress = Progress(tmp_path, None, 1, print, Clock())
    progress.begin("gsm8k")
    line = b"[I 2026-11-29T17:52:08.890] Request completed status_code=%d path= logger=root\n"
    progress.hear(line % 200 + line % 200 + line % 503)
    progress.write("running")
    written = document(tmp_path)
    assert (written["samples_done"], written["samples_total"], written["errors"]) == (2, None, 1)


def test_a_bar_that_has_not_moved_yet_hides_no_answers(tmp_path):
    progress = Progress(tmp_path, None, 1, print, Clock())
    progress.begin("gsm8k")
    progress.hear(BAR % (0, 20) + b"\n" + b"Request completed status_code=200 path= logger=root\n" * 3)
    progress.write("running")
    assert document(tmp_path)["samples_done"] == 3


def document(tmp_path):
    return validate("direct_progress", json.loads((tmp_path / "progress.json").read_text()))


def test_speed_and_time_left_follow_from_what_was_done(tmp_path):
    clock = Clock()
    progress = Progress(tmp_path, "slurm:7", 2, print, clock)
    progress.begin("gsm8k")
    for done in range(0, 60, 6):
        progress.hear(BAR % (done, 100) + b"\n")
        progress.tick()
        clock.now += 3
    written = document(tmp_path)
    assert (written["task"], written["samples_done"], written["samples_total"]) == ("gsm8k", 54, 100)
    assert written["requests_per_second"] == 2.0 and written["eta_seconds"] == 23.0


def test_a_count_that_the_harness_keeps_itself_is_read(tmp_path):
    progress = Progress(tmp_path, None, 1, print, Clock())
    (tmp_path / "count").write_text("17")
    progress.begin("gsm8k", (tmp_path / "none", tmp_path / "count"))
    progress.write("running")
    assert document(tmp_path)["samples_done"] == 17


def test_a_new_task_begins_at_nothing(tmp_path):
    progress = Progress(tmp_path, None, 2, print, Clock())
    progress.begin("gsm8k")
    progress.hear(BAR % (9, 20) + b"\n")
    progress.begin("ifeval")
    progress.write("running")
    assert document(tmp_path)["samples_done"] is None and document(tmp_path)["eta_seconds"] is None


def test_it_is_rewritten_every_few_seconds_and_not_more_often(tmp_path):
    clock = Clock()
    progress = Progress(tmp_path, None, 1, print, clock)
    progress.tick()
    assert not (tmp_path / "progress.json").exists()
    clock.now = 3.0
    progress.tick()
    assert document(tmp_path)["state"] == "running"


def test_a_change_of_state_is_written_at_once(tmp_path):
    progress = Progress(tmp_path, None, 1, print, Clock())
    progress.tick("stopped")
    assert document(tmp_path)["state"] == "stopped"


def test_a_harness_that_says_nothing_for_long_is_reported_again_and_again(tmp_path):
    clock, said = Clock(), []
    progress = Progress(tmp_path, None, 1, said.append, clock)
    progress.begin("gsm8k")
    for _ in range(130):
        clock.now += 10
        progress.tick()
    assert len(said) == 2 and "[gsm8k] has said nothing for 10 min" in said[0] and "20 min" in said[1]
    assert document(tmp_path)["silent_seconds"] >= 1290


def test_a_full_disk_does_not_end_the_harness_for_a_progress_file(tmp_path):
    clock = Clock()
    progress = Progress(tmp_path / "gone", None, 1, print, clock)
    clock.now = 3.0
    progress.tick()
