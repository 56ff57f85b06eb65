"""Everything finished, on disk before anything is made of it.

    inference_log.jsonl   first line: what the run is (fingerprint); then one line an answer or request error
    verified_log.jsonl    one line a score, or a scorer's failure

Lines are only ever appended; of several lines for one (problem_idx, repeat) the last one counts.
"""

import contextlib
import logging
import os
import re
import secrets
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from nemo_evaluator.engine.appendlog import AppendLog, Entry, scan
from nemo_evaluator.engine.claim import Claim
from nemo_evaluator.engine.fingerprint import Fingerprint
from nemo_evaluator.engine.ledger import Ledger
from nemo_evaluator.engine.plan import Ordinals, Plan
from nemo_evaluator.errors import ResumeMismatch, RunFailed, UsageError
from nemo_evaluator.results.jsonl import dump_line, parse_line

ANSWERS, SCORES = "inference_log.jsonl", "verified_log.jsonl"
RUN_FILES = (
    *(ANSWERS, SCORES, "eval-*.json", "results.jsonl", "trajectories.jsonl"),
    *("runtime_stats.json", "failure_analysis.json"),
)
SCHEMA_VERSION = 1
log = logging.getLogger(__name__)

_ANSWER_HEAD = re.compile(rb'\{"problem_idx":(\d+),"repeat":(\d+),"state":"([a-z_:]+)",')
"""All that a replay needs of an answer stands at the start of its line, so that long answers need not be parsed."""

Existing = Literal["refuse", "resume", "overwrite"]
"""What to do with results that are already in the folder."""


class Journal:
    """The two logs of one benchmark folder, open for writing by this process alone."""

    def __init__(self, folder: Path, run_id: str, answers: AppendLog, scores: AppendLog, claim: Claim) -> None:
        self.folder = folder
        self.run_id = run_id
        self._answers, self._scores, self._claim = answers, scores, claim
        self._started = time.monotonic()
        self.seconds = 0.0
        """How long this session took; known when it has ended."""

    @classmethod
    def open(cls, folder: Path, fingerprint: Fingerprint, existing: Existing = "refuse") -> Self:
        """Raises UsageError for a folder with results that may not be touched, ResumeMismatch for results of
        something else."""
        check_folder(folder, fingerprint, existing)
        folder.mkdir(parents=True, exist_ok=True)
        claim = Claim(folder)
        try:
            if existing == "overwrite":
                _empty(folder)
            run_id = _run_id_of(folder, fingerprint) or _begin(folder, fingerprint)
            return cls(folder, run_id, AppendLog(folder / ANSWERS), AppendLog(folder / SCORES), claim)
        except BaseException:
            claim.release()
            raise

    def answer(self, row: dict[str, Any]) -> Entry:
        return self._answers.append(dump_line(row))

    def score(self, row: dict[str, Any]) -> Entry:
        return self._scores.append(dump_line(row))

    def flush(self) -> None:
        """Answers need not wait for more of them."""
        self._answers.flush()

    def read_answer(self, ledger: Ledger, ordinal: int) -> dict[str, Any]:
        return parse_line(self._answers.read(ledger.answer_at[ordinal], ledger.answer_length[ordinal]))

    @property
    def is_backed_up(self) -> bool:
        """True while the disk is slower than the endpoint: wait for your entry before you ask for more."""
        return self._answers.is_backed_up

    def begin_session(self, endpoint: str | None) -> None:
        """Note who is asked from here on; a served model may move between sessions."""
        started = datetime.now(UTC).isoformat(timespec="seconds")
        self._answers.append(dump_line({"_type": "session", "started": started, "endpoint": endpoint}))

    def end_session(self) -> None:
        self.seconds = round(time.monotonic() - self._started, 3)
        with contextlib.suppress(RunFailed):  # a full disk has been reported already
            self._answers.append(dump_line({"_type": "session_end", "seconds": self.seconds}))

    async def close(self) -> None:
        try:
            async with self._scores, self._answers:
                pass
        finally:
            self._claim.release()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self.close()


@dataclass
class History:
    """What earlier sessions of a run left."""

    ledger: Ledger
    elapsed_seconds: float = 0.0
    """Of the sessions that ended in an orderly way."""
    endpoints: list[str] = field(default_factory=list)


def replay(folder: Path, plan: Plan) -> History:
    """Read both logs; lines of attempts outside `plan` are left alone, damaged ones count as never written."""
    history = History(Ledger(plan))
    ordinals = Ordinals(plan)
    damaged = 0
    for offset, line in scan(folder / ANSWERS):
        if is_damaged(line):
            damaged += 1
        elif match := _ANSWER_HEAD.match(line):
            ordinal = ordinals.of(int(match[1]), int(match[2]))
            if ordinal is not None:
                history.ledger.answered(ordinal, match[3].decode(), offset, len(line))
        else:
            _note_session(history, parse_line(line))
    for offset, line in scan(folder / SCORES):
        row = {} if is_damaged(line) else parse_line(line)
        if not row:
            damaged += 1
        elif (ordinal := ordinals.of(row["problem_idx"], row["repeat"])) is not None:
            history.ledger.scored(ordinal, row["reward"], offset, len(line))
    if damaged:
        log.warning("%s: %d damaged lines are passed over; their samples are done again.", folder, damaged)
    return history


def is_damaged(line: bytes) -> bool:
    """A machine that lost its power may leave zeros where a line was to be."""
    return not line.endswith(b"}\n") or b"\0" in line


def check_folder(folder: Path, fingerprint: Fingerprint, existing: Existing) -> None:
    """Raises what `Journal.open` would raise of what is in `folder`; touches nothing."""
    if existing == "refuse":
        _refuse_results(folder)
    elif existing == "resume":
        _run_id_of(folder, fingerprint)


def _refuse_results(folder: Path) -> None:
    if any((folder / name).exists() for name in (ANSWERS, "results.jsonl")) or any(folder.glob("eval-*.json")):
        raise UsageError(
            f"{folder} already contains results: choose another --output-dir, continue them with --resume, "
            "or replace them with --overwrite."
        )


def safe_name(name: str) -> str:
    """Of a benchmark, as part of a file name."""
    return re.sub(r"[^a-zA-Z0-9_.-]", "_", name)


def _begin(folder: Path, fingerprint: Fingerprint) -> str:
    """Write the first line, whole or not at all."""
    now = datetime.now(UTC)
    run_id = f"eval-{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}-{safe_name(fingerprint.environment)}"
    meta = {
        "_type": "meta",
        "schema_version": SCHEMA_VERSION,
        "run_id": run_id,
        "created": now.isoformat(timespec="seconds"),
        "config_hash": fingerprint.digest(),
        "fingerprint": asdict(fingerprint),
    }
    temporary = folder / f"{ANSWERS}.tmp"
    with temporary.open("wb") as file:
        file.write(dump_line(meta))
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(folder / ANSWERS)
    return run_id


def _run_id_of(folder: Path, fingerprint: Fingerprint) -> str | None:
    """The run that the journal in `folder` belongs to; None if there is no journal."""
    if not (folder / ANSWERS).exists():
        return None
    with (folder / ANSWERS).open("rb") as file:
        meta = parse_line(file.readline())
    if meta.get("_type") != "meta" or meta.get("schema_version") != SCHEMA_VERSION:
        raise ResumeMismatch(
            f"{folder / ANSWERS} was not written by this version of nel: choose another --output-dir, "
            "or replace it with --overwrite."
        )
    if differences := fingerprint.differences(meta["fingerprint"]):
        raise ResumeMismatch(
            f"{folder} holds answers to something else ({'; '.join(differences)}): go back to those settings, "
            "choose another --output-dir, or replace the answers with --overwrite."
        )
    run_id: str = meta["run_id"]
    return run_id


def _empty(folder: Path) -> None:
    """Remove what a run writes, and nothing else that may be there."""
    for pattern in RUN_FILES:
        for path in folder.glob(pattern):
            path.unlink()


def _note_session(history: History, row: dict[str, Any]) -> None:
    kind = row.get("_type")
    if kind == "session_end":
        history.elapsed_seconds += row["seconds"]
    elif kind == "session" and row["endpoint"] and row["endpoint"] not in history.endpoints:
        history.endpoints.append(row["endpoint"])
