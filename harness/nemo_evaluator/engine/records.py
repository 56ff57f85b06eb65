"""The settled samples of a run, read back from the journal one at a time."""

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, overload

from nemo_evaluator.engine.journal import ANSWERS, SCORES
from nemo_evaluator.engine.ledger import Ledger
from nemo_evaluator.results.jsonl import parse_line

Row = dict[str, Any]


class RunFolder:
    """Where a run keeps its journal: a given folder, or one that goes when the last rows read from it are forgotten."""

    def __init__(self, path: Path | None) -> None:
        self.path = path or Path(tempfile.mkdtemp(prefix="nel-"))
        if path is None:
            weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class Records(Sequence[Row]):
    """Answer and score of each settled sample in problem order, as `shape(record)` sees them; rows stay on disk."""

    def __init__(self, reader: "Reader", shape: Callable[[Row], Row] = dict) -> None:
        self._reader, self._shape = reader, shape

    @classmethod
    def of(cls, folder: RunFolder, ledger: Ledger) -> "Records":
        return cls(Reader(folder, ledger))

    def shaped(self, shape: Callable[[Row], Row]) -> "Records":
        """The same samples seen another way."""
        return Records(self._reader, shape)

    def __len__(self) -> int:
        return len(self._reader.ordinals)

    def __iter__(self) -> Iterator[Row]:
        with self._reader.files() as files:
            for ordinal in self._reader.ordinals:
                yield self._shape(self._reader.read(files, ordinal))

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        with self._reader.files() as files:
            if isinstance(index, slice):
                return [self._shape(self._reader.read(files, ordinal)) for ordinal in self._reader.ordinals[index]]
            return self._shape(self._reader.read(files, self._reader.ordinals[index]))


class Files(NamedTuple):
    """Descriptors of the two logs."""

    answers: int
    scores: int


class Reader:
    """Joins the two logs. Remembers its last record, so that views that go side by side read each one once."""

    def __init__(self, folder: RunFolder, ledger: Ledger) -> None:
        settled = ledger.settled()
        self.ordinals = [a.ordinal for a in ledger.plan.in_problem_order() if settled[a.ordinal]]
        self._folder, self._ledger = folder, ledger
        self._last: tuple[int, Row] = (-1, {})

    @contextmanager
    def files(self) -> Iterator[Files]:
        files = Files(*(os.open(self._folder.path / name, os.O_RDONLY) for name in (ANSWERS, SCORES)))
        try:
            yield files
        finally:
            for descriptor in files:
                os.close(descriptor)

    def read(self, files: Files, ordinal: int) -> Row:
        if self._last[0] != ordinal:
            self._last = ordinal, self._join(files, ordinal)
        return self._last[1]

    def _join(self, files: Files, ordinal: int) -> Row:
        ledger = self._ledger
        record = parse_line(os.pread(files.answers, ledger.answer_length[ordinal], ledger.answer_at[ordinal]))
        if ledger.score_length[ordinal]:
            record |= parse_line(os.pread(files.scores, ledger.score_length[ordinal], ledger.score_at[ordinal]))
        record["state"] = ledger.state(ordinal)
        return record
