"""Requests to models behind OpenAI-compatible endpoints."""

from nemo_evaluator.models.client import ModelClient
from nemo_evaluator.models.learned import Dialects
from nemo_evaluator.models.limiter import AdaptiveLimiter
from nemo_evaluator.models.retry import RetryPolicy
from nemo_evaluator.models.transport import Timeouts

__all__ = ["AdaptiveLimiter", "Dialects", "ModelClient", "RetryPolicy", "Timeouts"]
