"""Settings of several sources, laid over each other. Pure."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Later layers win, mappings key by key, everything else whole; null is a value like any other."""
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            known = result.get(key)
            is_deeper = isinstance(known, Mapping) and isinstance(value, Mapping)
            result[key] = merged(known, value) if is_deeper else deepcopy(value)  # type: ignore[arg-type]
    return result
