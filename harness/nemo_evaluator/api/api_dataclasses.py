"""The result of a harness, as its output parser builds it and results.yml holds it."""

from pydantic import BaseModel, ConfigDict, Field


class ScoreStats(BaseModel):
    """Whatever a harness knows of the sample behind a score; what it does not know is left out."""

    model_config = ConfigDict(extra="allow")

    count: int | None = None
    sum: float | None = None
    sum_squared: float | None = None
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    variance: float | None = None
    stddev: float | None = None
    stderr: float | None = None


class Score(BaseModel):
    value: float
    stats: ScoreStats = Field(default_factory=ScoreStats)


class MetricResult(BaseModel):
    scores: dict[str, Score]


class TaskResult(BaseModel):
    metrics: dict[str, MetricResult]


class GroupResult(BaseModel):
    metrics: dict[str, MetricResult]
    groups: dict[str, "GroupResult"] | None = None


class EvaluationResult(BaseModel):
    tasks: dict[str, TaskResult] | None = None
    groups: dict[str, GroupResult] | None = None
