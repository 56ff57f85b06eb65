"""A benchmark as a declaration: where the rows are, what is asked, and a function that judges an answer.

@benchmark("trivia", dataset="trivia.jsonl", prompt="Q: {question}\\nA:", target_field="answer")
@scorer
def trivia(sample: ScorerInput) -> bool:
    return fuzzy_match(sample.response, [sample.target])
"""

import asyncio
import hashlib
import importlib.metadata
import json
import random
import re
import shlex
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, get_args

from nemo_evaluator.environments.base import EndpointType, EvalEnvironment
from nemo_evaluator.environments.registry import Place, add
from nemo_evaluator.environments.rows import Dataset, Row, Rows, dataset_label, known_size, load_rows, takes_revision
from nemo_evaluator.environments.scorer import Scorer, ScorerInput, as_result
from nemo_evaluator.environments.template import Template, read_template
from nemo_evaluator.environments.told import told
from nemo_evaluator.errors import EvaluationError, UsageError
from nemo_evaluator.scoring.text import THINK_TAGS, Visible, strip_reasoning
from nemo_evaluator.types import SeedResult, VerifyResult

ROW_SEED = 42


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """All that `@benchmark` was told."""

    name: str
    dataset: Dataset
    """`hf://org/name?config=main&split=test&revision=...`, `org/name`, a local .jsonl, .json, .csv or .tsv (looked for
    beside the declaring file first), or a callable that returns rows."""
    prompt: str
    """A template with `{column}` fields, or a .txt or .md file of one."""
    target_field: str
    endpoint_type: EndpointType
    system_prompt: str | None
    field_mapping: Mapping[str, str]
    """Column of the dataset -> name used here."""
    extra: Mapping[str, Any]
    """The scorer's `config`; every key is a param that a run may set."""
    requirements: Collection[str]
    """pip packages that must be installed."""
    prepare_row: Callable[[Row, int, random.Random], Row] | None
    seed_fn: Callable[[Row, int], SeedResult] | None
    """Makes the problem itself; prompt, target_field and metadata then mean nothing."""
    strip_reasoning: bool
    think_tags: tuple[str, str]
    gold: str | Callable[[SeedResult], str] | None
    """A response that must score 1.0: a template over `expected` and the metadata, or a callable."""
    metadata: Collection[str] | None
    """The columns kept with each result; None keeps all but the target."""

    def __post_init__(self) -> None:
        accepted = get_args(EndpointType)
        if self.endpoint_type not in accepted:
            raise UsageError(f"Benchmark {self.name!r}: endpoint_type {self.endpoint_type!r} is not one of {accepted}.")


def benchmark(
    name: str,
    dataset: Dataset,
    prompt: str = "",
    target_field: str = "target",
    endpoint_type: EndpointType = "chat",
    system_prompt: str | None = None,
    field_mapping: Mapping[str, str] | None = None,
    extra: Mapping[str, Any] | None = None,
    requirements: Collection[str] | None = None,
    prepare_row: Callable[[Row, int, random.Random], Row] | None = None,
    seed_fn: Callable[[Row, int], SeedResult] | None = None,
    *,
    strip_reasoning: bool = True,
    think_tags: tuple[str, str] = THINK_TAGS,
    gold: str | Callable[[SeedResult], str] | None = None,
    metadata: Collection[str] | None = None,
    **kwargs: Any,
) -> Callable[[Scorer], Scorer]:
    """Declare and register a benchmark; goes above `@scorer`. `Declaration` tells what each keyword means."""
    declaration = Declaration(
        name=name,
        dataset=dataset,
        prompt=prompt,
        target_field=target_field,
        endpoint_type=endpoint_type,
        system_prompt=system_prompt,
        field_mapping=field_mapping or {},
        extra={**(extra or {}), **kwargs},
        requirements=requirements or (),
        prepare_row=prepare_row,
        seed_fn=seed_fn,
        strip_reasoning=strip_reasoning,
        think_tags=think_tags,
        gold=gold,
        metadata=metadata,
    )
    return partial(_define, declaration, Place.of(sys._getframe(1)))


def _define(declaration: Declaration, place: Place, scorer: Scorer) -> Scorer:
    """Register a class of its own for the declaration, as if the user had written it there."""
    if not isinstance(scorer, Scorer):
        raise UsageError(
            f"Benchmark {declaration.name!r}: put @scorer between @benchmark and the function it decorates."
        )
    body = {
        "__module__": place.module,
        "__doc__": scorer.function.__doc__ or place.module_doc,
        "declaration": declaration,
        "scorer": scorer,
        "folder": Path(place.file).parent,
        "endpoint_type": declaration.endpoint_type,
    }
    add(declaration.name, type(declaration.name, (DeclaredEnvironment,), body), place)
    return scorer


class DeclaredEnvironment(EvalEnvironment):
    """Rows, a template and a scorer, put together."""

    declaration: ClassVar[Declaration]
    scorer: ClassVar[Scorer]
    folder: ClassVar[Path]
    """Of the declaring file."""

    def __init__(self, **params: Any) -> None:
        super().__init__()
        accepted = [*self.declaration.extra, *(["revision"] if takes_revision(self.declaration.dataset) else [])]
        if unknown := params.keys() - set(accepted):
            raise UsageError(
                f"Benchmark {self.name!r} has no param {min(unknown)!r}; accepted: {', '.join(accepted) or 'none'}."
            )
        self.config: dict[str, Any] = {**self.declaration.extra, **params}
        self._loaded: _Loaded | None = None
        self._rng = random.Random()

    @classmethod
    def dataset_label(cls) -> str | None:
        return dataset_label(cls.declaration.dataset)

    @classmethod
    def known_size(cls) -> int | None:
        return known_size(cls.declaration.dataset, cls.folder)

    async def prepare(self) -> None:
        """Load the rows in a thread, and meet now whatever every sample would meet."""
        if self._loaded is None:
            self._loaded = await asyncio.to_thread(self._load)

    def __len__(self) -> int:
        return len(self._data.rows)

    async def seed(self, idx: int) -> SeedResult:
        await self.prepare()
        return self._seed(self._data.rows, self._data.template, idx)

    async def verify(self, response: str, expected: str, sandbox: Any = None, **metadata: Any) -> VerifyResult:
        return await self._judge(response, expected, metadata, sandbox)

    async def verify_sample(self, seed: SeedResult, response: str) -> VerifyResult:
        return await self._judge(response, seed.expected_answer, seed.metadata)

    async def gold_response(self, idx: int) -> str | None:
        gold = self.declaration.gold
        if gold is None:
            return None
        seed = await self.seed(idx)
        if callable(gold):
            return gold(seed)
        return Template.parse(gold).render({**seed.metadata, "expected": seed.expected_answer})

    def provenance(self) -> dict[str, Any]:
        declared = self.declaration
        asked = f"{self._data.template_text}\0{declared.system_prompt or ''}\0{self._data.first.prompt}"
        return {
            **self._data.rows.provenance(),
            "prompt_sha256": hashlib.sha256(asked.encode()).hexdigest(),
            "scorer": self.scorer.function.__name__,
            "params": _stable({key: value for key, value in self.config.items() if key != "revision"}),
            "strip_reasoning": list(declared.think_tags) if declared.strip_reasoning else False,
        }

    @property
    def _data(self) -> "_Loaded":
        """Loaded where it is first needed, for callers outside an event loop (`len(environment)`)."""
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def _load(self) -> "_Loaded":
        declared = self.declaration
        _require(declared.name, declared.requirements)
        text = read_template(declared.prompt, self.folder)
        try:
            rows = load_rows(declared.dataset, self.folder, self.config)
            if not len(rows):
                raise UsageError(f"Benchmark {declared.name!r}: its dataset ({self.dataset_label()}) has no rows.")
            template = Template.parse(text)
            return _Loaded(rows, template, text, first=self._seed(rows, template, 0))
        except EvaluationError:
            raise
        except Exception as error:  # the border: dataset, prepare_row and seed_fn are the user's
            raise UsageError(f"Benchmark {declared.name!r} cannot make its first problem: {told(error)}") from error

    def _seed(self, rows: Rows, template: Template, idx: int) -> SeedResult:
        declared = self.declaration
        row = _prepared(declared, rows[idx], idx, self._rng)
        if declared.seed_fn:
            return declared.seed_fn(row, idx)
        if declared.target_field not in row:
            raise UsageError(
                f"Benchmark {declared.name!r}: row {idx} has no target column {declared.target_field!r}; "
                f"it has: {', '.join(row)}. Set target_field or field_mapping."
            )
        return SeedResult(
            prompt=template.render(row),
            expected_answer=_as_text(row[declared.target_field]),
            metadata=_kept(declared, row),
            system=declared.system_prompt,
        )

    async def _judge(
        self, response: str, expected: str, metadata: Mapping[str, Any], sandbox: Any = None
    ) -> VerifyResult:
        declared = self.declaration
        visible = strip_reasoning(response, declared.think_tags) if declared.strip_reasoning else Visible(response)
        sample = ScorerInput(visible.text, expected, metadata, self.config, sandbox)
        result = as_result(declared.name, await self.scorer.score(sample))
        if visible.is_unclosed:
            result.scoring_details["unclosed_reasoning"] = True
        return result


@dataclass(frozen=True, slots=True)
class _Loaded:
    rows: Rows
    template: Template
    template_text: str
    first: SeedResult
    """Part of the prompt's hash: prepare_row and seed_fn may write a prompt that the template does not show."""


def _require(name: str, requirements: Collection[str]) -> None:
    missing = [package for package in requirements if not _is_installed(package)]
    if missing:
        raise UsageError(f"Benchmark {name!r} needs {', '.join(missing)}. Run: pip install {shlex.join(missing)}")


def _is_installed(requirement: str) -> bool:
    """By distribution name, as pip knows it ("scikit-learn>=1.5"); the version is pip's business."""
    name = re.match(r"[\w.-]+", requirement.strip())
    try:
        return name is not None and bool(importlib.metadata.distribution(name[0]))
    except importlib.metadata.PackageNotFoundError:
        return False


def _prepared(declared: Declaration, row: Row, idx: int, rng: random.Random) -> Row:
    """The same for a row whatever came before it: `rng` begins anew with each."""
    for old, new in declared.field_mapping.items():
        if old in row:
            row[new] = row.pop(old)
    if declared.prepare_row is None:
        return row
    rng.seed(f"{ROW_SEED}/{idx}")
    prepared = declared.prepare_row(row, idx, rng)
    if not isinstance(prepared, dict):
        raise UsageError(
            f"Benchmark {declared.name!r}: prepare_row returned {type(prepared).__name__}, not a row. Return the dict."
        )
    return prepared


def _kept(declared: Declaration, row: Row) -> dict[str, Any]:
    """The target is in `expected_answer` already; the rest is small, or the author named what to keep."""
    if declared.metadata is not None:
        return {column: row[column] for column in declared.metadata if column in row}
    return {column: value for column, value in row.items() if column != declared.target_field}


def _stable(config: Mapping[str, Any]) -> Any:
    """As JSON; what JSON cannot hold stands by its type, because its repr may name an address."""
    return json.loads(json.dumps(config, sort_keys=True, default=lambda value: type(value).__qualname__))


def _as_text(target: Any) -> str:
    if isinstance(target, str):
        return target
    return json.dumps(target, ensure_ascii=False) if isinstance(target, (list, dict)) else str(target)
