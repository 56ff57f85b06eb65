"""summary.json and failures.txt: what became of the tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Mapping

from nemo_evaluator.direct.atomic import read_json, write_json, write_text
from nemo_evaluator.direct.masking import Masker
from nemo_evaluator.direct.teed import tail

OK = "ok"
TAIL_BYTES = 8192


def state_of(exit_code: int) -> str:
    return OK if exit_code == 0 else f"failed({exit_code})"


def read_summary(output_dir: Path) -> dict[str, str]:
    return {name: state for name, state in read_json(output_dir / "summary.json").items() if isinstance(state, str)}


def write_outcome(output_dir: Path, states: Mapping[str, str], masker: Masker) -> None:
    write_json(output_dir / "summary.json", dict(states))
    failed = {name: state for name, state in states.items() if state != OK}
    path = output_dir / "failures.txt"
    if failed:
        texts = (_failure(output_dir / name / "harness.log", name, state) for name, state in failed.items())
        write_text(path, masker.mask_text("\n".join(texts)))
    else:
        path.unlink(missing_ok=True)


def _failure(log: Path, name: str, state: str) -> str:
    try:
        end = tail(log, TAIL_BYTES)
    except OSError as error:
        end = f"(no log: {error.strerror})"
    return f"==== {name}: {state} (end of {log}) ====\n{end.rstrip()}\n"
