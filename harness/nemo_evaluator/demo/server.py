"""llama.cpp's OpenAI-compatible server over the demo model, on loopback only."""

import socket
from contextlib import closing
from pathlib import Path
from typing import Any

from nemo_evaluator.demo.weights import import_extra
from nemo_evaluator.errors import UsageError

HOST = "127.0.0.1"
MODEL = "gemma3-270m"
CONTEXT = 2048
"""Tokens of one request, prompt and answer together."""

PLAIN_TEXT = (
    r"{% for message in messages %}{{ message['content'] }}{% if not loop.last %}{{ '\n\n' }}{% endif %}{% endfor %}"
)
"""Chat template: the text of the messages, which the model continues. A base model knows no turns, and llama.cpp's own
default would show it tokens that it never met in training."""


def start_server(weights: Path, port: int, parallel: int) -> Any:
    """Load the model and listen; native threads answer until the process ends. Port 0 takes a free one."""
    _refuse_taken(port)
    xllamacpp = import_extra("xllamacpp")
    try:
        return xllamacpp.Server(_settings(xllamacpp, weights, port, parallel))
    except RuntimeError as error:
        raise UsageError(f"llama.cpp could not load {weights} ({error}): delete the file and start again") from error


def _refuse_taken(port: int) -> None:
    """llama.cpp has one error for everything, so that the likeliest cause is looked at first."""
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise UsageError(
                f"cannot listen on {HOST}:{port} ({error.strerror}): choose another --port, or none for a free one"
            ) from error


def _settings(xllamacpp: Any, weights: Path, port: int, parallel: int) -> Any:
    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights)
    settings.model_alias = {MODEL}
    settings.chat_template = PLAIN_TEXT
    settings.hostnames, settings.port = [HOST], port
    settings.n_parallel, settings.n_ctx = parallel, CONTEXT * parallel
    settings.cache_prompt = False  # a reused prefix changes the arithmetic, and with it the answer to the same seed
    settings.cache_ram_mib = 0  # else up to 8 GB of old prompts
    settings.verbosity = 0
    return settings
