"""The engine: problems in, bundle out."""

from nemo_evaluator.engine.progress import ProgressTracker
from nemo_evaluator.engine.run import run_evaluation
from nemo_evaluator.models import ModelClient
from nemo_evaluator.results.write import write_all
from nemo_evaluator.types import ModelResponse, StepRecord

__all__ = ["ModelClient", "ModelResponse", "ProgressTracker", "StepRecord", "run_evaluation", "write_all"]
