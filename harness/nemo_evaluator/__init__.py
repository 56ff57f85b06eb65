"""Evaluate language models behind OpenAI-compatible endpoints."""

__version__ = "0.4.0"
