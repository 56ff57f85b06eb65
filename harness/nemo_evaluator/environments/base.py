"""What a benchmark is to the engine: problems to ask and a verdict for every answer."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from nemo_evaluator.types import SeedResult, VerifyResult

EndpointType = Literal["chat", "completions"]


class EvalEnvironment(ABC):
    """Abstract base class for all benchmarks."""

    registered_name: ClassVar[str | None] = None
    """Set by `@register`."""
    endpoint_type: EndpointType = "chat"
    """The protocol the prompts were written for."""

    @property
    def name(self) -> str:
        return self.registered_name or type(self).__name__

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    async def seed(self, idx: int) -> SeedResult: ...

    @abstractmethod
    async def verify(self, response: str, expected: str, **metadata: Any) -> VerifyResult: ...

    async def prepare(self) -> None:  # noqa: B027 - a hook, empty on purpose
        """Load what the problems need; called once, before the first `seed`."""

    async def close(self) -> None:  # noqa: B027 - a hook, empty on purpose
        """Give back what `prepare` acquired."""

    async def dataset_size(self) -> int:
        return len(self)

    async def verify_sample(self, seed: SeedResult, response: str) -> VerifyResult:
        """What the engine calls: `verify` with the seed's metadata, whatever its keys are called."""
        keywords = self._verify_signature.keywords(seed.metadata)
        return await self.verify(response, seed.expected_answer, **keywords)

    async def gold_response(self, idx: int) -> str | None:
        """A response that must score 1.0 (`nel validate` tries it), or None if the environment cannot write one."""
        return None

    def provenance(self) -> dict[str, Any]:
        """Where the problems come from; the same on every run over the same data."""
        return {"environment": type(self).__qualname__}

    @classmethod
    def dataset_label(cls) -> str | None:
        """The dataset as `nel list` shows it."""
        return None

    @classmethod
    def known_size(cls) -> int | None:
        """The number of problems, if it is known before anything is loaded."""
        return None

    @cached_property
    def _verify_signature(self) -> "VerifySignature":
        return VerifySignature.of(self.verify)


@dataclass(frozen=True, slots=True)
class VerifySignature:
    """Which keywords a user's `verify` can be given."""

    reserved: frozenset[str]
    """Names that a metadata key must not take: they are filled already."""
    accepted: frozenset[str] | None
    """None if `verify` takes `**metadata`."""

    @classmethod
    def of(cls, verify: Any) -> "VerifySignature":
        parameters = list(inspect.signature(verify).parameters.values())
        names = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
        reserved = {"self", *names[:2], *({"sandbox"} & set(names))}
        takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
        return cls(frozenset(reserved), None if takes_all else frozenset(names) - reserved)

    def keywords(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        if self.reserved.isdisjoint(metadata):
            keywords = dict(metadata)
        else:
            keywords = {self._free_name(key, metadata): value for key, value in metadata.items()}
        if self.accepted is not None:
            return {key: value for key, value in keywords.items() if key in self.accepted}
        return keywords

    def _free_name(self, key: str, taken: Collection[str]) -> str:
        if key not in self.reserved:
            return key
        name = f"{key}_"
        while name in taken:
            name += "_"
        return name
