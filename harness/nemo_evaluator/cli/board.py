"""Live progress of a suite: bars on a terminal, plain lines elsewhere, and progress.json for other programs."""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from nemo_evaluator.engine import ProgressTracker
from nemo_evaluator.engine.ledger import Ledger
from nemo_evaluator.engine.progress import Settled
from nemo_evaluator.errors import RunFailed
from nemo_evaluator.results.write import write_json

REDRAW_SECONDS = 0.2
FILE_SECONDS = 5.0


@dataclass
class Tally(ProgressTracker):
    """Running figures of one benchmark."""

    label: str
    folder: Path
    total: int = 0
    done: int = 0
    done_before: int = 0
    """By earlier sessions."""
    errors: int = 0
    scored: int = 0
    reward: float = 0.0
    started: float = field(default_factory=time.monotonic)

    def start(self, benchmark: str, ledger: Ledger) -> None:
        states = ledger.states()
        unanswered = sum(n for state, n in states.items() if state.startswith("error:"))
        rewards = [reward for reward in ledger.reward if reward == reward]
        self.total = states.total()
        self.done = self.done_before = self.total - states["not_asked"] - states["answered"] - unanswered
        self.scored, self.reward, self.started = len(rewards), sum(rewards), time.monotonic()

    def settled(self, sample: Settled) -> None:
        self.done += 1
        if sample.reward is None:
            self.errors += 1
        else:
            self.scored += 1
            self.reward += sample.reward

    def finish(self) -> None:
        self.write_file()

    def write_file(self) -> None:
        """For `nel eval status` and whoever else looks; a run does not fail for want of it."""
        with suppress(RunFailed):
            write_json(self.folder / "progress.json", self.figures())

    @property
    def score(self) -> float | None:
        return self.reward / self.scored if self.scored else None

    @property
    def rate(self) -> float:
        """Samples a second in this session."""
        return (self.done - self.done_before) / max(time.monotonic() - self.started, 1e-9)

    @property
    def eta_seconds(self) -> float | None:
        return (self.total - self.done) / self.rate if self.done > self.done_before else None

    def figures(self) -> dict[str, Any]:
        eta = self.eta_seconds
        return {
            "benchmark": self.label,
            "done": self.done,
            "total": self.total,
            "errors": self.errors,
            "score": None if self.score is None else round(self.score, 4),
            "samples_per_second": round(self.rate, 2),
            "eta_seconds": None if eta is None else round(eta),
        }


class Board:
    """Shows tallies while it is entered. Must be entered inside the event loop."""

    def __init__(self, tallies: list[Tally], progress_interval: float, stream: TextIO) -> None:
        self._tallies, self._interval = tallies, progress_interval
        self._console = Console(file=stream)
        self._bars: Progress | None = None
        self._tasks: list[TaskID] = []
        self._ticking: list[asyncio.Task[None]] = []

    @property
    def is_live(self) -> bool:
        """Bars are drawn."""
        return self._console.is_terminal

    async def __aenter__(self) -> "Board":
        if self.is_live:
            self._bars = _bars(self._console)
            self._tasks = [self._bars.add_task(tally.label, total=None, score="", extra="") for tally in self._tallies]
            self._bars.start()
            self._ticking.append(asyncio.create_task(_every(REDRAW_SECONDS, self._redraw)))
        else:
            self._ticking.append(asyncio.create_task(_every(self._interval, self._print_lines)))
        self._ticking.append(asyncio.create_task(_every(FILE_SECONDS, self._write_files)))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._ticking:
            task.cancel()
        if self._bars:
            self._redraw()
            self._bars.stop()

    def _redraw(self) -> None:
        assert self._bars is not None
        for task, tally in zip(self._tasks, self._tallies, strict=True):
            errors = f"  [red]{tally.errors} errors[/red]" if tally.errors else ""
            self._bars.update(
                task,
                total=tally.total or None,
                completed=tally.done,
                score="" if tally.score is None else f"score {tally.score:.3f}",
                extra=f"{tally.rate:,.1f}/s{errors}",
            )

    def _print_lines(self) -> None:
        for tally in self._tallies:
            if 0 < tally.done < tally.total:
                self._console.print(_line(tally), markup=False, highlight=False, soft_wrap=True)

    def _write_files(self) -> None:
        for tally in self._tallies:
            if 0 < tally.done < tally.total:
                tally.write_file()


def _bars(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[score]}"),
        TextColumn("{task.fields[extra]}"),
        TimeRemainingColumn(),
        console=console,
    )


def _line(tally: Tally) -> str:
    score = "" if tally.score is None else f"  score {tally.score:.4f}"
    eta = "" if tally.eta_seconds is None else f"  eta {tally.eta_seconds:,.0f} s"
    return f"{tally.label}: {tally.done:,}/{tally.total:,}{score}  errors {tally.errors:,}  {tally.rate:,.1f}/s{eta}"


async def _every(seconds: float, act: Any) -> None:
    while True:
        await asyncio.sleep(seconds)
        act()
