"""The files of a run, each replaced atomically."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from nemo_evaluator.errors import RunFailed
from nemo_evaluator.results.jsonl import dump_indented, dump_line

LAZY = ("results", "trajectories")
"""Keys of a bundle whose rows go to files of their own."""


def write_all(bundle: dict[str, Any], folder: str | Path) -> Path:
    """Write the bundle, results.jsonl, trajectories.jsonl, runtime_stats.json and failure_analysis.json.

    Returns the bundle's path. The bundle comes last: where it exists, the other files are complete.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    scores = bundle["benchmark"]["scores"]
    _write_samples(folder, bundle["results"], bundle["trajectories"])
    write_json(folder / "runtime_stats.json", scores["runtime"])
    write_json(folder / "failure_analysis.json", scores["failures"])
    path = folder / f"{bundle['run_id']}.json"
    write_json(path, {key: value for key, value in bundle.items() if key not in LAZY})
    return path


def _write_samples(folder: Path, results: Iterable[dict[str, Any]], trajectories: Iterable[dict[str, Any]]) -> None:
    """Side by side, so that what both are made of is read once."""
    with (
        replacing(folder / "results.jsonl") as result_file,
        replacing(folder / "trajectories.jsonl") as trajectory_file,
    ):
        for result, trajectory in zip(results, trajectories, strict=True):
            result_file.write(dump_line(result))
            trajectory_file.write(dump_line(trajectory))


def write_json(path: Path, value: Any) -> None:
    with replacing(path) as file:
        file.write(dump_indented(value))


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` once it is whole and on disk. Raises RunFailed where there is no room."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb", buffering=1 << 20) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise RunFailed(
            f"Cannot write {path}: {error}. Finished answers are safe: make room, then run again with --resume."
        ) from error
