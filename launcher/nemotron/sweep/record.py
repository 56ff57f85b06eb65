"""A sweep as it is remembered: its points, and where each leaves its results; by these its jobs are found again."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from nemotron.errors import UsageError, unknown
from nemotron.files import write_json
from nemotron.home import home
from nemotron.jobs import Record, all_records


@dataclass(frozen=True, slots=True)
class Place:
    point: str
    output_dir: str


@dataclass(frozen=True, slots=True)
class Sweep:
    id: str
    """Of the same points under the same profile always the same, so that a sweep that is run again goes on."""
    profile_name: str
    submitted: str
    """When it was last run."""
    places: tuple[Place, ...]

    @classmethod
    def of(cls, profile_name: str, places: Sequence[Place], submitted: str) -> "Sweep":
        said = json.dumps([profile_name, sorted(place.output_dir for place in places)])
        return cls(hashlib.sha256(said.encode()).hexdigest()[:8], profile_name, submitted, tuple(places))


def remember_sweep(sweep: Sweep, environ: Mapping[str, str]) -> None:
    folder = _folder(environ)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / f"{sweep.id}.json", asdict(sweep))


def find_sweep(sweep_id: str | None, environ: Mapping[str, str]) -> Sweep:
    """By id or its unambiguous beginning; without one, the latest."""
    sweeps = sorted(_sweeps(_folder(environ)), key=lambda sweep: sweep.submitted)
    if not sweeps:
        raise UsageError("No sweep was submitted from here yet: `nemotron steps run … --batch PROFILE -m` submits one.")
    if sweep_id is None:
        return sweeps[-1]
    matching = [sweep for sweep in sweeps if sweep.id.startswith(sweep_id)]
    if not matching:
        raise UsageError(unknown("sweep", sweep_id, [sweep.id for sweep in sweeps[-10:]]))
    if len(matching) > 1:
        raise UsageError(f"{sweep_id!r} begins {len(matching)} sweeps: {', '.join(sweep.id for sweep in matching)}.")
    return matching[0]


def jobs_of(sweep: Sweep, environ: Mapping[str, str]) -> dict[str, Record]:
    """The latest job of each point that has one: the latest that writes where the point does."""
    by_folder = {
        record.output_dir: record for record in all_records(environ) if record.profile_name == sweep.profile_name
    }
    found = {place.point: by_folder.get(place.output_dir) for place in sweep.places}
    return {point: record for point, record in found.items() if record is not None}


def _folder(environ: Mapping[str, str]) -> Path:
    return home(environ) / "sweeps"


def _sweeps(folder: Path) -> Iterator[Sweep]:
    for path in folder.glob("*.json"):
        with suppress(KeyError, TypeError, ValueError):  # no sweep, or not one that this version can read
            yield _read(path)


def _read(path: Path) -> Sweep:
    content = json.loads(path.read_text(encoding="utf-8"))
    return Sweep(**content | {"places": tuple(Place(**place) for place in content["places"])})
