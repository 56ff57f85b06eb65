"""The first lines of a log, and no more of them."""

from pathlib import Path
from typing import Any, BinaryIO

from nemo_evaluator.results.jsonl import dump_line


class LineLog:
    """Appends JSON lines until there are `limit` of them, those of earlier sessions counted; never a secret."""

    def __init__(self, path: Path, limit: int | None, secrets: tuple[str, ...]) -> None:
        self._path = path
        self._secrets = tuple(secret.encode() for secret in secrets if secret)
        self._left = limit
        self._file: BinaryIO | None = None
        if limit is not None and path.exists():
            with path.open("rb") as lines:
                self._left = max(0, limit - sum(1 for _ in lines))

    @property
    def is_full(self) -> bool:
        return self._left == 0

    def write(self, row: dict[str, Any]) -> None:
        if self.is_full:
            return
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("ab", buffering=0)
        line = dump_line(row)
        for secret in self._secrets:
            line = line.replace(secret, b"***")
        self._file.write(line)
        if self._left is not None:
            self._left -= 1

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
