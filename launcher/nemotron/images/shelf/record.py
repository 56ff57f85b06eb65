"""What is written beside an image: where it is from, what is in it, and how to tell that it is whole."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Record:
    reference: str
    """As it was asked for."""
    index_digest: str | None
    """None where the name leads to one platform only."""
    platform: str
    platform_digest: str
    layers: tuple[str, ...]
    """Digests, the base first."""
    size: int
    """Bytes of the .sqsh."""
    sha256: str
    """Of the .sqsh."""
    tool: str
    created: str
    """ISO 8601, UTC."""

    @property
    def json(self) -> bytes:
        return (json.dumps(asdict(self), indent=2) + "\n").encode()


def parse_record(content: bytes) -> Record | None:
    """None for what is no record."""
    try:
        said: Mapping[str, Any] = json.loads(content)
        return Record(**{**said, "layers": tuple(said["layers"]), "size": int(said["size"])})
    except (ValueError, KeyError, TypeError):
        return None
