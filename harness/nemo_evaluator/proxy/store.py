"""Answers on disk: append-only files, one for every process that writes, so that nobody needs a lock.

    {"key":"<32 hex digits>","bytes":<length of the reply>,"reply":<the endpoint's body, byte for byte>}

A line is written before the harness gets its answer: whoever is killed then, the answer is kept. A line that a crash
has torn is not of its own length and is passed over.
"""

import logging
import os
import re
import secrets
import socket
from pathlib import Path

import orjson

logger = logging.getLogger(__name__)

KEY_BYTES = 16
_HEAD = re.compile(rb'\{"key":"([0-9a-f]{32})","bytes":(\d+),"reply":')
_TAIL = b"}\n"
_OFFSET_BITS, _LENGTH_BITS = 44, 32


class AnswerStore:
    """Keeps a key and a place in memory for every answer, and nothing else of it."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError if the folder cannot be made or read."""
        self._folder = folder
        self._files: list[int] = []
        self._places: dict[bytes, int] = {}
        """Key -> file, offset and length, packed into one number: a tuple a key would be twice as large."""
        self._own: int | None = None
        self._end = 0
        self._is_full = False
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("*.jsonl")):
            self._index(path)

    def __len__(self) -> int:
        return len(self._places)

    def get(self, key: bytes) -> bytes | None:
        if (place := self._places.get(key)) is None:
            return None
        file, offset = place >> (_OFFSET_BITS + _LENGTH_BITS), (place >> _LENGTH_BITS) & ((1 << _OFFSET_BITS) - 1)
        return os.pread(self._files[file], place & ((1 << _LENGTH_BITS) - 1), offset)

    def put(self, key: bytes, reply: bytes) -> None:
        """A disk that takes no more ends the keeping, not the task."""
        if self._is_full:
            return
        reply = reply if b"\n" not in reply else orjson.dumps(orjson.loads(reply))
        head = b'{"key":"%s","bytes":%d,"reply":' % (key.hex().encode(), len(reply))
        try:
            self._write(head + reply + _TAIL)
        except OSError as error:
            self._is_full = True
            logger.warning("The cache %s keeps no more answers: %s. Make room before you resume.", self._folder, error)
            return
        self._remember(key, len(self._files) - 1, self._end + len(head), len(reply))
        self._end += len(head) + len(reply) + len(_TAIL)

    def close(self) -> None:
        if self._own is not None:
            os.fsync(self._own)
        for file in self._files:
            os.close(file)

    def _write(self, line: bytes) -> None:
        if self._own is None:
            name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
            self._own = os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            self._files.append(self._own)
        if (written := os.write(self._own, line)) < len(line):
            raise OSError(f"only {written} of {len(line)} bytes were written")

    def _index(self, path: Path) -> None:
        self._files.append(os.open(path, os.O_RDONLY))
        offset = 0
        with path.open("rb", buffering=1 << 20) as lines:
            for line in lines:
                match = _HEAD.match(line)
                if match and len(line) == match.end() + int(match[2]) + len(_TAIL) and line.endswith(_TAIL):
                    at = offset + match.end()
                    self._remember(bytes.fromhex(match[1].decode()), len(self._files) - 1, at, int(match[2]))
                offset += len(line)

    def _remember(self, key: bytes, file: int, offset: int, length: int) -> None:
        self._places[key] = (file << (_OFFSET_BITS + _LENGTH_BITS)) | (offset << _LENGTH_BITS) | length
