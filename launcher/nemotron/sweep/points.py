"""The points of a sweep: what each says beyond the others, and what it is called."""

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from nemotron.config import alternatives, key_of
from nemotron.errors import UsageError

NAME_LENGTH = 100
RESULTS_VARIABLE, RESULTS_KEY = "EVAL_RESULTS_DIR", "output_dir"


@dataclass(frozen=True, slots=True)
class Point:
    name: str
    """One word, which also names its folder of results."""
    overrides: tuple[str, ...] = field(repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables over those of the submitting process."""
    chooses_folder: bool = False
    """It says itself where its results go."""


def points_of(overrides: Sequence[str]) -> list[Point]:
    """One for each combination of the comma lists, the last list running fastest."""
    lists = [alternatives(override) for override in overrides]
    varied = [number for number, choices in enumerate(lists) if len(choices) > 1]
    if not varied:
        raise UsageError("Nothing to sweep over: give a key several values, target.api_endpoint.model_id=a,b.")
    chooses_folder = any(key_of(overrides[number]) == RESULTS_KEY for number in varied)
    points = []
    for combination in itertools.product(*lists):
        words = "-".join(slug(combination[number][1]) for number in varied)
        points.append(Point(words, tuple(override for override, _ in combination), {}, chooses_folder))
    return _distinct(points)


def slug(value: str) -> str:
    """A word for a folder. Of a URL only host and path: what else it holds may be secret."""
    if "://" in value:
        parts = urlsplit(value)
        value = parts.netloc.rpartition("@")[2] + re.sub(r"/v1(/chat)?/completions/?$", "", parts.path)
    return re.sub(r"[^A-Za-z0-9._]+", "-", value).strip("-.") or "empty"


def _distinct(points: Sequence[Point]) -> list[Point]:
    """Values that read alike as words, and names too long for a folder, are told apart by a hash."""
    named = Counter(point.name.casefold() for point in points)
    return [
        point if named[point.name.casefold()] == 1 and len(point.name) <= NAME_LENGTH else _hashed(point)
        for point in points
    ]


def _hashed(point: Point) -> Point:
    digest = hashlib.sha256("\0".join(point.overrides).encode()).hexdigest()[:6]
    return replace(point, name=f"{point.name[: NAME_LENGTH - 7]}-{digest}")
