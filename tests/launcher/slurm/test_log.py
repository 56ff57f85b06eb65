"""A log that grows, is not there yet, or begins again."""

import os

import pytest

from nemotron.slurm import log
from nemotron.transport.here import Here


class Story:
    """What happens to the log at each pause of the one who follows it; the job is over after the last."""

    def __init__(self, *events):
        self.events, self.now = list(events), 0.0

    def sleep(self, seconds):
        self.now += seconds
        if self.events:
            self.events.pop(0)()

    def clock(self):
        return self.now

    @property
    def is_over(self):
        return not self.events


@pytest.fixture
def path(tmp_path):
    return tmp_path / "job.log"


def followed(path, *events):
    story = Story(*events)
    session = Here(os.environ)
    return list(log.lines(session, str(path), True, lambda: story.is_over, sleep=story.sleep, clock=story.clock))


def shown(path):
    return list(log.lines(Here(os.environ), str(path), False, lambda: True))


def append(path, content):
    def event():
        with path.open("ab") as file:
            file.write(content)

    return event


def test_lines_without_their_ends(path):
    path.write_bytes(b"one\ntwo\n\nthree")
    assert shown(path) == ["one", "two", "", "three"]


def test_a_job_that_has_not_begun_has_none(path):
    assert shown(path) == []


def test_one_that_is_not_there_yet_is_waited_for(path):
    assert followed(path, lambda: None, append(path, b"one\n")) == ["one"]


def test_lines_and_letters_that_come_in_parts(path):
    parts = [append(path, part) for part in (b"on", b"e\nt\xc3", b"\xbcr\n", b"end")]
    assert followed(path, *parts) == ["one", "tür", "end"]


def test_what_is_written_last_is_not_lost(path):
    """Between the last look at the file and the news that the job is over."""
    story = Story()

    def is_over():
        append(path, b"last\n")()
        return True

    path.write_bytes(b"first\n")
    lines = log.lines(Here(os.environ), str(path), True, is_over, sleep=story.sleep, clock=story.clock)
    assert list(lines) == ["first", "last"]


def test_a_requeued_job_that_appends(path):
    assert followed(path, append(path, b"life 1\n"), append(path, b"life 2\n")) == ["life 1", "life 2"]


def test_a_log_that_begins_again(path):
    """Shorter than before, longer than before, or gone for a while."""
    path.write_bytes(b"first life, a long line\n")
    lives = [
        lambda: path.write_bytes(b"second\n"),
        lambda: path.write_bytes(b"third life, which is a longer line than any other before\n"),
        path.unlink,
        lambda: path.write_bytes(b"fourth\n"),
    ]
    assert followed(path, *lives) == [
        "first life, a long line",
        "second",
        "third life, which is a longer line than any other before",
        "fourth",
    ]


def test_a_log_larger_than_one_look(path, monkeypatch):
    monkeypatch.setattr(log, "CHUNK", 1000)
    lines = [f"line {number}" for number in range(2000)]
    path.write_text("\n".join(lines) + "\n")
    assert shown(path) == lines


def test_slurm_is_asked_less_often_than_the_file(path):
    asked = []
    story = Story(*[append(path, b"x\n")] * 20)
    lines = log.lines(
        Here(os.environ),
        str(path),
        True,
        lambda: asked.append(story.now) or story.is_over,
        sleep=story.sleep,
        clock=story.clock,
    )
    assert len(list(lines)) == 20
    assert asked == [0, 5, 10, 15, 20]
