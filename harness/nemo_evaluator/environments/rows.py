"""The rows of a dataset by index, read when they are asked for.

A local .jsonl stays on disk behind an index of line offsets, a hub dataset stays in its memory-mapped Arrow file
(`hub.py`); only what is small by nature (.json, .csv, .tsv, the rows a callable made) is held as Python objects.
"""

import csv
import hashlib
import inspect
import os
import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

import orjson

from nemo_evaluator.environments.hub import HubDataset
from nemo_evaluator.errors import UsageError

Row = dict[str, Any]
Dataset = str | Callable[..., Any]
F = TypeVar("F", bound=Callable[..., Any])

DELIMITERS = {".csv": ",", ".tsv": "\t"}
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LOCAL_FILES = (".jsonl", ".json", *DELIMITERS)
ACCEPTED = (
    "hf://org/name?config=...&split=...&revision=..., org/name, a .jsonl, .json, .csv or .tsv file, or a function that "
    "returns rows"
)


class Rows(Protocol):
    """Random access to rows; each call gives a fresh dict that the caller may change."""

    def __len__(self) -> int: ...

    def __getitem__(self, idx: int, /) -> Row: ...

    def provenance(self) -> dict[str, Any]: ...


def load_rows(dataset: Dataset, folder: Path, config: Mapping[str, Any]) -> Rows:
    """Open what `@benchmark(dataset=...)` names; files are looked for in `folder` first."""
    if callable(dataset):
        return _from_callable(dataset, config)
    if dataset.endswith(LOCAL_FILES):
        path = _existing(dataset, folder)
        try:
            return _from_file(path)
        except OSError as error:
            raise UsageError(f"Dataset file {path} cannot be read: {error.strerror}.") from None
    if hub := HubDataset.parse(dataset):
        return replace(hub, revision=config.get("revision") or hub.revision).load()
    raise UsageError(f"Dataset {dataset!r} is none of: {ACCEPTED}.")


def takes_revision(dataset: Dataset) -> bool:
    """Whether the run may pin a revision of it."""
    return isinstance(dataset, str) and not dataset.endswith(LOCAL_FILES)


def reads(source: str) -> Callable[[F], F]:
    """Says where the rows of a dataset function come from, for whoever looks before anything is loaded."""

    def mark(function: F) -> F:
        function.source = source  # type: ignore[attr-defined]
        return function

    return mark


def dataset_label(dataset: Dataset) -> str:
    if not callable(dataset):
        return dataset
    made_by = getattr(dataset, "__name__", type(dataset).__name__)
    return getattr(dataset, "source", None) or f"made by {made_by}()"


def known_size(dataset: Dataset, folder: Path) -> int | None:
    """Counted in local line files, unknown elsewhere until the data is loaded."""
    if callable(dataset) or not dataset.endswith(".jsonl"):
        return None
    path = folder / dataset
    if not path.is_file():
        return None
    with path.open("rb") as lines:
        return sum(1 for line in lines if line.strip())


class RowList:
    """Rows that were in memory anyway."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], source: str, content_hash: str | None = None) -> None:
        self._rows = rows
        self._source = source
        self._content_hash = content_hash or _hash_of(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, idx: int) -> Row:
        return dict(self._rows[idx])

    def provenance(self) -> dict[str, Any]:
        return {"dataset": self._source, "content_hash": self._content_hash}


class JsonLines:
    """A .jsonl file: one pass checks, counts and hashes it, then each row is one positioned read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offsets = array("Q")
        self._lengths = array("Q")
        with path.open("rb") as lines:
            self._content_hash = self._scan(lines)
            self._descriptor = os.dup(lines.fileno())  # stays open: replacing the file during a run changes nothing

    def _scan(self, lines: BinaryIO) -> str:
        digest = hashlib.sha256()
        offset = 0
        for number, line in enumerate(lines, 1):
            digest.update(line)
            content = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
            if content.strip():
                _parse_object(content, f"{self._path}:{number}")
                self._offsets.append(offset + len(line) - len(content))
                self._lengths.append(len(content))
            offset += len(line)
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self._offsets)

    def __getitem__(self, idx: int) -> Row:
        line = os.pread(self._descriptor, self._lengths[idx], self._offsets[idx])
        return _parse_object(line, f"{self._path}, row {idx}")

    def provenance(self) -> dict[str, Any]:
        return {"dataset": self._path.name, "content_hash": self._content_hash}

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)


class Joined:
    """Several datasets one after the other, each with columns of its own added to its rows (a language, a subject)."""

    def __init__(self, parts: Sequence[tuple[Rows, Mapping[str, Any]]]) -> None:
        self._parts = parts
        self._size = sum(len(rows) for rows, _ in parts)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, idx: int) -> Row:
        position = range(self._size)[idx]
        for rows, columns in self._parts:
            if position < len(rows):
                return {**rows[position], **columns}
            position -= len(rows)
        raise IndexError(idx)

    def provenance(self) -> dict[str, Any]:
        """What the parts have in common as it is, the rest part by part."""
        all_parts = [rows.provenance() for rows, _ in self._parts]
        keys = dict.fromkeys(key for part in all_parts for key in part)
        joined = {key: [part.get(key) for part in all_parts] for key in keys}
        shared = {
            key: values[0] if values.count(values[0]) == len(values) else values for key, values in joined.items()
        }
        return {**shared, "content_hash": _hash_of([part["content_hash"] for part in all_parts])}


def _from_callable(dataset: Callable[..., Any], config: Mapping[str, Any]) -> Rows:
    """Give the callable the params that it names; `num_examples` is optional by custom."""
    parameters = inspect.signature(dataset).parameters
    given = {name: config[name] for name in parameters if name in config}
    if "num_examples" in parameters and parameters["num_examples"].default is inspect.Parameter.empty:
        given.setdefault("num_examples", None)
    rows = dataset(**given)
    if isinstance(rows, (Joined, JsonLines, RowList)):
        return rows
    if not isinstance(rows, Iterable) or isinstance(rows, (str, Mapping)):
        raise UsageError(f"Dataset {dataset_label(dataset)} returned {type(rows).__name__}. Return a list of rows.")
    listed = list(rows)
    for idx, row in enumerate(listed):
        if not isinstance(row, Mapping):
            raise UsageError(f"Dataset {dataset_label(dataset)}: row {idx} is a {type(row).__name__}, not a dict.")
    return RowList(listed, dataset_label(dataset))


def _existing(name: str, folder: Path) -> Path:
    here = Path(name).expanduser()
    for path in (folder / here, here):
        if path.is_file():
            return path
    raise UsageError(f"No dataset file {name!r} in {folder} or {Path.cwd()}. Give its path.")


def _from_file(path: Path) -> Rows:
    if path.suffix == ".jsonl":
        return JsonLines(path)
    content = path.read_bytes()
    rows = _parse_array(content, path) if path.suffix == ".json" else _parse_table(content, path)
    return RowList(rows, path.name, hashlib.sha256(content).hexdigest())


def _parse_object(line: bytes, place: str) -> Row:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{place}: not JSON ({error}). Every line of a .jsonl dataset is one JSON object.") from None
    if not isinstance(row, dict):
        raise UsageError(f"{place}: a JSON {type(row).__name__}. Every line of a .jsonl dataset is one JSON object.")
    return row


def _parse_array(content: bytes, path: Path) -> list[Row]:
    try:
        rows = orjson.loads(content.removeprefix(BYTE_ORDER_MARK))
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{path}: not JSON ({error}). A .json dataset is a list of objects.") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{path}: a .json dataset is a list of objects; for one object a line, name it .jsonl.")
    return rows


def _parse_table(content: bytes, path: Path) -> list[Row]:
    csv.field_size_limit(sys.maxsize)  # the module's default, 128 kB, is less than a long passage
    try:
        text = content.decode("utf-8-sig")
        reader = csv.DictReader(text.splitlines(keepends=True), delimiter=DELIMITERS[path.suffix], strict=True)
        rows = []
        for row in reader:
            if None in row or None in row.values():
                columns = len(reader.fieldnames or ())
                raise UsageError(f"{path}:{reader.line_num}: not {columns} columns as in the header. Mend the line.")
            rows.append(row)
    except (csv.Error, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read as UTF-8 {path.suffix[1:]}: {error}.") from None
    return rows


def _hash_of(value: Any) -> str:
    """Of the content, whatever the order of the columns."""
    return hashlib.sha256(
        orjson.dumps(value, default=repr, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    ).hexdigest()
