"""Solvers: seeded problem in, answer out."""

from nemo_evaluator.solvers.base import Solver
from nemo_evaluator.solvers.chat import ChatSolver
from nemo_evaluator.solvers.completion import CompletionSolver
from nemo_evaluator.types import SolveResult

__all__ = ["ChatSolver", "CompletionSolver", "SolveResult", "Solver"]
