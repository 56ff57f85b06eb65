"""A log that grows, is not there yet, or begins again."""

import os

import pytest

from nemotron.slurm import log
from nemotron.transport.base import TransportError
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


def asked_at(path, *events):
    """When Slurm was asked whether the job is over."""
    asked, story = [], Story(*events)

    def is_over():
        asked.append(story.now)
        return story.is_over

    list(log.lines(Here(os.environ), str(path), True, is_over, sleep=story.sleep, clock=story.clock))
    return asked


def test_a_job_that_prints_is_asked_about_less_often_than_its_log_is_read(path):
    assert asked_at(path, *[append(path, b"x\n")] * 20) == [0, 5, 10, 15, 20]


def test_a_job_that_waits_is_asked_about_less_and_less_often(path):
    assert asked_at(path, *[lambda: None] * 110) == [0, 5, 13, 25, 42, 68, 98, 128]


class Unreachable(Here):
    """For so many looks."""

    def __init__(self, looks):
        super().__init__(os.environ)
        self.looks = looks

    def read(self, path, offset=0, size=None):
        self.looks -= 1
        if self.looks >= 0:
            raise TransportError("The connection broke.")
        return super().read(path, offset, size)


def test_a_connection_that_comes_back_loses_no_line(path):
    path.write_bytes(b"one\n")
    story = Story(*[lambda: None] * 4, append(path, b"two\n"))
    lines = log.lines(Unreachable(4), str(path), True, lambda: story.is_over, sleep=story.sleep, clock=story.clock)
    assert list(lines) == ["one", "two"]


@pytest.mark.parametrize("follow", [True, False])
def test_one_that_does_not_come_back_is_an_error_in_the_end(path, follow):
    story = Story()
    lines = log.lines(Unreachable(1000), str(path), follow, lambda: False, sleep=story.sleep, clock=story.clock)
    with pytest.raises(TransportError):
        list(lines)
    assert story.now < 1000
