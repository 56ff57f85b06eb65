"""The output parser of the toy harness."""

import json
import pathlib

from nemo_evaluator.api.api_dataclasses import EvaluationResult, MetricResult, Score


def parse_output(output_dir):
    counts = json.loads((pathlib.Path(output_dir) / "scores.json").read_text())
    score = Score(value=counts["right"] / counts["all"], stats={"stderr": 0.1, "count": counts["all"]})
    metrics = {"accuracy": MetricResult(scores={"accuracy": score})}
    return EvaluationResult(tasks={"sums_str": dict(metrics=metrics)}, groups={"sums_str": dict(metrics=metrics)})
