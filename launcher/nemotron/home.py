"""Where this user's submissions are remembered."""

from collections.abc import Mapping
from pathlib import Path


def home(environ: Mapping[str, str]) -> Path:
    if given := environ.get("NEMOTRON_HOME"):
        return Path(given).expanduser().absolute()
    state = environ.get("XDG_STATE_HOME") or Path(environ.get("HOME") or Path.home()) / ".local" / "state"
    return Path(state) / "nemotron"
