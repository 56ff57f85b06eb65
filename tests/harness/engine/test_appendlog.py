import asyncio
import subprocess
import sys

import pytest

from nemo_evaluator.engine import appendlog
from nemo_evaluator.engine.appendlog import AppendLog, scan


async def test_a_line_is_on_disk_when_its_entry_is_durable(tmp_path):
    async with AppendLog(tmp_path / "log") as log:
        entry = log.append(b"one\n")
        await entry.durable()
        assert (tmp_path / "log").read_bytes() == b"one\n"
        assert log.read(entry.offset, entry.length) == b"one\n"


async def test_lines_become_durable_in_groups_of_256(tmp_path):
    async with AppendLog(tmp_path / "log") as log:
        entries = [log.append(b"%d\n" % n) for n in range(257)]
        assert entries[0].group is entries[255].group
        assert entries[256].group is not entries[255].group


async def test_a_lonely_line_does_not_wait_for_a_full_group(tmp_path):
    async with AppendLog(tmp_path / "log") as log:
        async with asyncio.timeout(20 * appendlog.GROUP_SECONDS):
            await log.append(b"lonely\n").durable()


async def test_entries_say_where_their_lines_stand(tmp_path):
    async with AppendLog(tmp_path / "log") as log:
        entries = [log.append(line) for line in (b"a\n", b"bb\n", b"ccc\n")]
        await entries[-1].durable()
    assert [(entry.offset, entry.length) for entry in entries] == [(0, 2), (2, 3), (5, 4)]
    assert list(scan(tmp_path / "log")) == [(0, b"a\n"), (2, b"bb\n"), (5, b"ccc\n")]


async def test_closing_writes_what_is_queued(tmp_path):
    async with AppendLog(tmp_path / "log") as log:
        log.append(b"last words\n")
    assert (tmp_path / "log").read_bytes() == b"last words\n"


@pytest.mark.parametrize("torn", [b"", b"{", b"x" * 200_000])
@pytest.mark.parametrize("whole", [b"", b'{"a": 1}\n', b"y" * 100_000 + b"\n"])
async def test_a_torn_last_line_is_cut_off(tmp_path, whole, torn):
    (tmp_path / "log").write_bytes(whole + torn)
    async with AppendLog(tmp_path / "log") as log:
        entry = log.append(b'{"c": 3}\n')
        await entry.durable()
        assert log.read(entry.offset, entry.length) == b'{"c": 3}\n'
    assert (tmp_path / "log").read_bytes() == whole + b'{"c": 3}\n'


async def test_a_torn_last_line_is_no_line_to_readers(tmp_path):
    (tmp_path / "log").write_bytes(b"whole\ntorn")
    assert list(scan(tmp_path / "log")) == [(0, b"whole\n")]


LIMITED = """
import asyncio, resource, signal, sys
from pathlib import Path
from nemo_evaluator.engine.appendlog import AppendLog
from nemo_evaluator.errors import RunFailed

async def main():
    log = AppendLog(Path(sys.argv[1]))
    await log.append(b"a" * 999 + b"\\n").durable()
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        await log.append(b"b" * 999 + b"\\n").durable()
    except RunFailed as error:
        print(error)
    try:
        log.append(b"c\\n")
    except RunFailed as error:
        print("refused")
    try:
        await log.close()
    except RunFailed as error:
        print("closed")

asyncio.run(main())
"""


def test_a_full_disk_keeps_whole_lines_and_says_so(tmp_path):
    log = tmp_path / "log"
    done = subprocess.run([sys.executable, "-c", LIMITED, str(log)], capture_output=True, text=True, check=True)
    assert log.read_bytes() == b"a" * 999 + b"\n"
    message, *rest = done.stdout.splitlines()
    assert str(log) in message and "--resume" in message
    assert rest == ["refused", "closed"]


async def test_a_slow_disk_is_told_to_whoever_appends(tmp_path, monkeypatch):
    monkeypatch.setattr(appendlog, "BACKLOG_BYTES", 10)
    async with AppendLog(tmp_path / "log") as log:
        entry = log.append(b"more than ten bytes\n")
        assert log.is_backed_up
        await entry.durable()
        assert not log.is_backed_up


@pytest.mark.parametrize("lines", [1, 255, 256, 257, 1000])
async def test_every_line_arrives_once_and_in_order(tmp_path, lines):
    async with AppendLog(tmp_path / "log") as log:
        for n in range(lines):
            log.append(b"%d\n" % n)
            if n % 100 == 0:
                await asyncio.sleep(0)
    assert [int(line) for _, line in scan(tmp_path / "log")] == list(range(lines))
