"""One maker at a time, and none that is dead."""

import json
import os
import subprocess
import sys
import threading
import time

import pytest

from nemotron.images.shelf.claim import Claim, ClaimLost, Patience, claimed
from nemotron.images.shelf.shell import ShelfFailed
from nemotron.transport.here import Here

pytestmark = pytest.mark.timeout(600)
SECONDS = 180
QUICK = Patience(heartbeat=0.05, poll=0.02, stale=0.6)
OWNER = """
import os, sys, time
from nemotron.images.shelf.claim import claimed
from nemotron.transport.here import Here
with claimed(Here(os.environ), sys.argv[1], print):
    print("taken", flush=True)
    time.sleep(600)
"""
FOREIGN = {"token": "1", "user": "you", "host": "other", "pid": 1, "started": "1", "machine": "other:boot:pid"}


@pytest.fixture
def session():
    return Here({"PATH": os.environ["PATH"]})


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".image.claim"


def heard() -> tuple[list[str], object]:
    lines: list[str] = []
    return lines, lines.append


def test_is_a_file_that_names_its_owner_and_goes_with_it(session, path):
    with claimed(session, str(path), print, QUICK):
        assert json.loads(path.read_text())["pid"] == os.getpid()
        assert path.stat().st_mode & 0o060 == 0o060  # a successor of the group may replace it
    assert not list(path.parent.iterdir())


def test_goes_also_when_the_work_fails(session, path):
    with pytest.raises(RuntimeError), claimed(session, str(path), print, QUICK):
        raise RuntimeError
    assert not path.exists()


def test_the_second_waits_for_the_first(session, path):
    order, lines = [], []
    inside = threading.Event()

    def second():
        inside.wait(SECONDS)
        with claimed(session, str(path), lines.append, QUICK) as claim:
            order.append(f"second, contended: {claim.was_contended}")

    thread = threading.Thread(target=second)
    thread.start()
    with claimed(session, str(path), print, QUICK):
        inside.set()
        wait_until(lambda: lines)
        order.append("first")
    thread.join(SECONDS)
    assert order == ["first", "second, contended: True"]
    assert f"waiting for process {os.getpid()}" in lines[0]


def test_of_many_who_want_it_each_has_it_alone(session, path):
    inside, most, had = [], [], []

    def work(number):
        with claimed(session, str(path), lambda line: None, Patience(0.05, 0.01, SECONDS)):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.01)
            inside.remove(number)
            had.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert sorted(had) == list(range(8)) and set(most) == {1}


def test_an_owner_of_this_machine_that_was_killed_is_followed_at_once(session, path):
    with subprocess.Popen([sys.executable, "-c", OWNER, str(path)], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout and owner.stdout.readline() == "taken\n"
        owner.kill()
    lines, say = heard()
    with claimed(session, str(path), say, Patience(stale=SECONDS * 10)):
        assert any("taking over" in line for line in lines)
        assert json.loads(path.read_text())["pid"] == os.getpid()
    assert not list(path.parent.iterdir())


def test_an_owner_elsewhere_that_falls_silent_is_followed(session, path):
    path.write_text(json.dumps(FOREIGN))
    lines, say = heard()
    with claimed(session, str(path), say, QUICK):
        assert "taking over from process 1 of you on other" in lines[-1]


def test_another_user_is_not_looked_up_among_processes_that_may_be_hidden(session, path):
    owner = json.loads(Claim(session, str(path)).content) | {"user": "you", "pid": 0}
    path.write_text(json.dumps(owner))
    began = time.monotonic()
    with claimed(session, str(path), print, QUICK):
        assert time.monotonic() - began > QUICK.stale


def test_an_owner_elsewhere_that_gives_signs_of_life_is_waited_for(session, path):
    path.write_text(json.dumps(FOREIGN))
    lines, stop = [], threading.Event()

    def live():
        while not stop.wait(0.02):
            path.touch()
        path.unlink()

    owner = threading.Thread(target=live)
    owner.start()
    threading.Timer(4 * QUICK.stale, stop.set).start()
    with claimed(session, str(path), lines.append, Patience(0.05, 0.02, 2.0)):
        pass
    owner.join(SECONDS)
    assert stop.is_set() and not any("taking over" in line for line in lines)


def test_of_many_heirs_one_takes_over(session, path):
    """Who comes late to a dead owner's claim does not take it from the heir."""
    path.write_text(json.dumps(FOREIGN))
    inside, most = [], []

    def inherit(number):
        with claimed(session, str(path), lambda line: None, QUICK):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.05)
            inside.remove(number)

    threads = [threading.Thread(target=inherit, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert len(most) == 6 and set(most) == {1}


def test_an_owner_that_was_taken_for_dead_publishes_nothing(session, path):
    with claimed(session, str(path), print, QUICK) as claim:
        path.write_text(json.dumps(FOREIGN))
        with pytest.raises(ClaimLost, match="was taken over by somebody else"):
            claim.check()
    assert json.loads(path.read_text()) == FOREIGN


@pytest.mark.parametrize("content", ["", "no json", "{}", '{"pid": "x", "machine": 1}'])
def test_a_claim_that_cannot_be_read_holds_until_it_is_old(session, path, content):
    path.write_text(content)
    lines, say = heard()
    with claimed(session, str(path), say, QUICK):
        assert lines == ["waiting for somebody", "taking over from somebody, who does not live"]


def test_a_folder_that_cannot_be_written_is_named(session, tmp_path):
    with pytest.raises(ShelfFailed, match=r"claiming .*/no/such"), claimed(session, str(tmp_path / "no/such"), print):
        pass


def test_names_with_quotes_and_commands_are_names(session, tmp_path):
    path = tmp_path / "a'b $(touch x)\"; touch y"
    with claimed(session, str(path), print, QUICK):
        assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def wait_until(holds) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
