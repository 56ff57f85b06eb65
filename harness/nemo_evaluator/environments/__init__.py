"""Benchmarks: write one as a class, or declare it with `@benchmark` and `@scorer`."""

from nemo_evaluator.environments.base import EvalEnvironment
from nemo_evaluator.environments.declare import benchmark
from nemo_evaluator.environments.registry import register
from nemo_evaluator.environments.scorer import ScorerInput, scorer
from nemo_evaluator.types import SeedResult, VerifyResult

__all__ = [
    "EvalEnvironment",
    "ScorerInput",
    "SeedResult",
    "VerifyResult",
    "benchmark",
    "register",
    "scorer",
]
