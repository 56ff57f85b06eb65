"""`load_config`: files, flags, overrides and environment in; a validated config out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from nemo_evaluator.config.checks import problems_of
from nemo_evaluator.config.compose import compose, prune_nulls
from nemo_evaluator.config.document import Document
from nemo_evaluator.config.locate import problems_in, usage_error
from nemo_evaluator.config.model import EvalConfig
from nemo_evaluator.config.overrides import apply_override, parse_override
from nemo_evaluator.config.quick import Flags, apply_flags, chosen, from_flags, marks_of_flags
from nemo_evaluator.config.references import expand_environment
from nemo_evaluator.errors import UsageError


class Loaded(NamedTuple):
    config: EvalConfig
    composed: dict[str, Any]
    """What was validated, with environment references as they were written; show and store it `masked`."""


def load_config(
    path: Path | None, *, flags: Flags | None = None, overrides: Sequence[str] = (), environ: Mapping[str, str]
) -> Loaded:
    """The file (or, without one, the flags), then flags, then overrides, then the environment. Raises UsageError."""
    flags = flags or Flags()
    document = _start(path, flags, environ)
    for text in overrides:
        document = apply_override(document, parse_override(text))
    document = prune_nulls(document)
    config = validate(expand_environment(document, environ))
    if path is None or flags.bench is None:
        return Loaded(config, document.data)
    return _selected(Loaded(config, document.data), flags.bench)


def _start(path: Path | None, flags: Flags, environ: Mapping[str, str]) -> Document:
    if path is not None:
        return apply_flags(compose(path, environ), flags)
    if flags.bench is None:
        raise UsageError("nothing to run: give a config file, or --bench NAME with --model-url and --model-id")
    data = from_flags(flags, environ)
    return Document(data, marks_of_flags(data), "command line")


def validate(document: Document) -> EvalConfig:
    """All problems in one error, a line each."""
    try:
        config = EvalConfig.model_validate(document.data)
    except ValidationError as error:
        raise usage_error(problems_in(error, EvalConfig, document.data), document) from None
    if problems := list(problems_of(config)):
        raise usage_error(problems, document)
    return config


def _selected(loaded: Loaded, bench: str) -> Loaded:
    """The config with the benchmarks that --bench names; the others were validated all the same."""
    indices = chosen(bench, [benchmark.name for benchmark in loaded.config.benchmarks])
    config = loaded.config.model_copy(update={"benchmarks": [loaded.config.benchmarks[index] for index in indices]})
    return Loaded(config, loaded.composed | {"benchmarks": [loaded.composed["benchmarks"][index] for index in indices]})
