"""What an answer depends on. A journal belongs to one fingerprint: no other model or temperature can inherit it."""

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from nemo_evaluator.engine.contract import FAULTS, checked_seed, fault
from nemo_evaluator.environments import EvalEnvironment
from nemo_evaluator.masking import told_apart
from nemo_evaluator.solvers import Solver

SAMPLED_PROMPTS = 16
"""Prompts are hashed at this many places, evenly over the whole dataset: a changed template shows in each of them."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The host of the endpoint is left out: a model that moved to another node is the same model."""

    environment: str
    dataset: dict[str, Any]
    prompts: str
    solver: dict[str, Any]

    def digest(self) -> str:
        return sha256(asdict(self))

    def differences(self, recorded: dict[str, Any]) -> list[str]:
        """One line for each setting that differs from a recorded `asdict(fingerprint)`."""
        then, now = dict(_leaves(recorded)), dict(_leaves(asdict(self)))
        return [
            f"{key}: {_show(then.get(key))} in the journal, {_show(now.get(key))} now"
            for key in sorted(then.keys() | now.keys())
            if then.get(key) != now.get(key)
        ]


async def take_fingerprint(env: EvalEnvironment, solver: Solver, dataset_size: int) -> Fingerprint:
    """Seeds a few problems of `env`; the limits of this run (which problems, how many repeats) play no part."""
    places = min(SAMPLED_PROMPTS, dataset_size)
    prompts = await asyncio.gather(*(_prompt(env, place * dataset_size // places) for place in range(places)))
    dataset = {"size": dataset_size, **env.provenance()}
    return Fingerprint(env.name, _plain(dataset), sha256(prompts), _plain(solver.identity()))


async def _prompt(env: EvalEnvironment, idx: int) -> Any:
    try:
        seed = checked_seed(await env.seed(idx))
    except FAULTS as error:  # the run will make an error:seed of it
        fault(error)
        return type(error).__name__
    return [seed.prompt, seed.messages, seed.system]


def sha256(value: Any) -> str:
    """Of the canonical JSON of `value`."""
    return "sha256:" + hashlib.sha256(_canonical(value)).hexdigest()


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """As it will be read back from the journal, so that both compare equal; no key or token is in it."""
    plain: dict[str, Any] = told_apart(orjson.loads(_canonical(value)))
    return plain


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, default=str, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def _show(value: Any) -> str:
    text = "unset" if value is None else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
