from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from nemo_evaluator.config.load import Loaded, load_config
from nemo_evaluator.config.quick import Flags

SMALLEST = """\
services:
  m:
    type: api
    url: http://localhost:8000/v1
    protocol: chat_completions
    model: tiny
benchmarks:
  - name: gsm8k
    solver:
      type: simple
      service: m
"""

Load = Callable[..., Loaded]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads a YAML text as `run.yaml` of the working directory, which holds the other files that are given."""
    monkeypatch.chdir(tmp_path)

    def load_text(
        text: str = SMALLEST,
        *overrides: str,
        flags: Flags | None = None,
        environ: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
    ) -> Loaded:
        for name, content in {"run.yaml": text, **(files or {})}.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(content)
        return load_config(Path("run.yaml"), flags=flags, overrides=overrides, environ=environ or {})

    return load_text
