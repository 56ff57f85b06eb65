"""How other commands find a run: nel_run.json in its output folder and in the user's run store."""

import json
import logging
import os
import secrets
import socket
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from nemo_evaluator.config.model import Output
from nemo_evaluator.engine.claim import process_start
from nemo_evaluator.errors import RunFailed, UsageError
from nemo_evaluator.results.write import replacing, write_json

log = logging.getLogger(__name__)

RECORD, PID, LOG = "nel_run.json", "nel.pid", "nel_eval.log"
RUN_ID_VARIABLE, LOG_VARIABLE = "NEL_RUN_ID", "NEL_RUN_LOG"


@dataclass(frozen=True, slots=True)
class RunRecord:
    run_id: str
    output_dir: str
    """Absolute."""
    pid: int
    process_start: str | None
    """Tells this process from a later one with the same number."""
    host: str
    started_at: str
    benchmarks: list[str]
    """Folder names below output_dir."""
    log: str | None
    """Of a background run."""

    @property
    def folder(self) -> Path:
        return Path(self.output_dir)

    @property
    def is_here(self) -> bool:
        return self.host == socket.gethostname()

    @property
    def is_running(self) -> bool:
        """Known only on the host of the run."""
        return self.is_here and self.process_start is not None and process_start(self.pid) == self.process_start

    def save(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{self.folder} cannot be made ({error.strerror}): choose another --output-dir.") from None
        write_json(self.folder / RECORD, asdict(self))
        try:
            stored = store() / self.run_id
            stored.mkdir(parents=True, exist_ok=True)
            write_json(stored / RECORD, asdict(self))
        except (OSError, RunFailed):  # no home, as in many containers
            log.warning("%s cannot be written: look after this run by its folder, -o %s.", store(), self.folder)
        with replacing(self.folder / PID) as file:
            file.write(f"{self.pid}\n".encode())

    def ended(self) -> None:
        (self.folder / PID).unlink(missing_ok=True)


def new_record(output: Output, resume: bool) -> RunRecord:
    """For this process. A background run was given its id and log by the process that started it."""
    now = datetime.now(UTC)
    run_id = os.environ.get(RUN_ID_VARIABLE) or f"{now:%Y%m%d_%H%M%S}_{secrets.token_hex(4)}"
    return RunRecord(
        run_id=run_id,
        output_dir=str(_output_dir(output, run_id, resume).absolute()),
        pid=os.getpid(),
        process_start=process_start(os.getpid()),
        host=socket.gethostname(),
        started_at=now.isoformat(timespec="seconds"),
        benchmarks=[],
        log=os.environ.get(LOG_VARIABLE),
    )


def _output_dir(output: Output, run_id: str, resume: bool) -> Path:
    """With `timestamped`, a folder of its own for each run; a resumed run goes on in the newest."""
    base = Path(output.dir).expanduser()
    if not output.timestamped:
        return base
    earlier = sorted(record.parent for record in base.glob(f"*/{RECORD}"))
    return earlier[-1] if resume and earlier else base / run_id


def find_run(run_id: str | None, output_dir: Path) -> RunRecord:
    """By id from the run store, else the newest run of `output_dir`."""
    path = (store() / run_id if run_id else output_dir) / RECORD
    if not path.exists():
        known = sorted(folder.name for folder in store().iterdir()) if run_id and store().is_dir() else []
        hint = f"the latest are {', '.join(known[-3:])}" if known else "give its folder with --output-dir"
        raise UsageError(f"No run {run_id!r} is known: {hint}." if run_id else f"{output_dir} holds no run: {hint}.")
    return RunRecord(**json.loads(path.read_text(encoding="utf-8")))


def is_on_record(run_id: str, folder: Path) -> bool:
    """The run has begun."""
    try:
        return bool(json.loads((folder / RECORD).read_text(encoding="utf-8"))["run_id"] == run_id)
    except (OSError, ValueError, KeyError):
        return False


def store() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "nel" / "runs"
