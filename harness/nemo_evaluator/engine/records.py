"""The settled samples of a run, read back from the journal one at a time."""

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

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

    def __init__(self, folder: RunFolder, ledger: Ledger, shape: Callable[[Row], Row] = dict) -> None:
        self._folder, self._ledger, self._shape = folder, ledger, shape
        settled = ledger.settled()
        self._ordinals = [attempt.ordinal for attempt in ledger.plan.in_problem_order() if settled[attempt.ordinal]]

    def shaped(self, shape: Callable[[Row], Row]) -> "Records":
        """The same samples seen another way."""
        return Records(self._folder, self._ledger, shape)

    def __len__(self) -> int:
        return len(self._ordinals)

    def __iter__(self) -> Iterator[Row]:
        with _Files(self._folder.path) as files:
            for ordinal in self._ordinals:
                yield self._shape(self._record(files, ordinal))

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        with _Files(self._folder.path) as files:
            if isinstance(index, slice):
                return [self._shape(self._record(files, ordinal)) for ordinal in self._ordinals[index]]
            return self._shape(self._record(files, self._ordinals[index]))

    def _record(self, files: "_Files", ordinal: int) -> Row:
        ledger = self._ledger
        record = parse_line(os.pread(files.answers, ledger.answer_length[ordinal], ledger.answer_at[ordinal]))
        if ledger.score_length[ordinal]:
            record |= parse_line(os.pread(files.scores, ledger.score_length[ordinal], ledger.score_at[ordinal]))
        return record | {"state": ledger.state(ordinal)}


class _Files:
    def __init__(self, folder: Path) -> None:
        self.answers = os.open(folder / ANSWERS, os.O_RDONLY)
        self.scores = os.open(folder / SCORES, os.O_RDONLY)

    def __enter__(self) -> "_Files":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.answers)
        os.close(self.scores)
