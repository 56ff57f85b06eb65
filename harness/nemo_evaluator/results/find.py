"""Bundles on disk: our own, and any that keep the minimal contract (a bundle beside a results.jsonl)."""

import glob
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nemo_evaluator.errors import UsageError
from nemo_evaluator.results.jsonl import parse_line


@dataclass(frozen=True, slots=True)
class StoredBundle:
    """A bundle file and the rows beside it."""

    path: Path
    content: dict[str, Any]

    @property
    def benchmark(self) -> str:
        name: str = self.content["benchmark"]["name"]
        return name

    def rows(self) -> Iterator[dict[str, Any]]:
        """Line by line; each has at least `problem_idx` and `reward`, and `repeat` (0 where the file has none)."""
        path = self.path.with_name("results.jsonl")
        if not path.exists():
            return
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                row = parse_line(line)
                if "problem_idx" not in row or "reward" not in row:
                    raise UsageError(f"{path}:{number} is no result row: it needs problem_idx and reward.")
                yield {"repeat": 0} | row


def find_bundles(where: str | Path) -> list[StoredBundle]:
    """The bundles that a file, a folder (searched through) or a glob pattern names. Raises UsageError for none."""
    place = Path(where)
    if place.is_dir():
        paths = sorted(place.rglob("eval-*.json"))
    else:
        paths = sorted(Path(match) for match in glob.glob(str(where), recursive=True))  # noqa: PTH207 - the pattern may be absolute
    if not paths:
        raise UsageError(f"{where} holds no eval-*.json: name a bundle, or a folder that `nel eval run` wrote.")
    return [read_bundle(path) for path in paths]


def read_bundle(path: Path) -> StoredBundle:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as a bundle: {error}.") from error
    if not isinstance(content, dict) or "name" not in content.get("benchmark", {}):
        raise UsageError(f"{path} is no bundle: it has no benchmark.name.")
    return StoredBundle(path, content)
