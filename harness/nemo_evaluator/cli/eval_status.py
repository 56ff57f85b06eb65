"""`nel eval status`."""

import json
from pathlib import Path
from typing import Any

import click

from nemo_evaluator.cli.options import which_run
from nemo_evaluator.cli.runs import RunRecord, find_run
from nemo_evaluator.results.find import read_bundle


@click.command()
@which_run
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def status(run_id: str | None, output_dir: Path, as_json: bool) -> None:
    """How far a run is."""
    record = find_run(run_id, output_dir)
    report = describe(record)
    if as_json:
        click.echo(json.dumps(report, indent=2))
        return
    click.echo(f"Run {record.run_id}: {report['state']}")
    click.echo(f"  process {record.pid} on {record.host}, started {record.started_at}, {record.output_dir}")
    for figures in report["benchmarks"]:
        click.echo(f"  {_line(figures)}")


def describe(record: RunRecord) -> dict[str, Any]:
    benchmarks = [_benchmark(record.folder / name) for name in record.benchmarks]
    return {"run_id": record.run_id, "state": _state(record, benchmarks), "benchmarks": benchmarks}


def _state(record: RunRecord, benchmarks: list[dict[str, Any]]) -> str:
    """running, completed, failed, interrupted, died (no bundle, no process), or unknown (it is on another host)."""
    if record.is_running:
        return "running"
    ended = {figures.get("status") for figures in benchmarks}
    for state in ("failed", "interrupted"):
        if state in ended:
            return state
    if ended == {"completed"}:
        return "completed"
    return "died" if record.is_here else "unknown"


def _benchmark(folder: Path) -> dict[str, Any]:
    """progress.json, and what the bundle says where there is one for it."""
    progress, figures = folder / "progress.json", {"benchmark": folder.name}
    if progress.exists():
        figures |= json.loads(progress.read_text(encoding="utf-8"))
    bundles = sorted(folder.glob("eval-*.json"))
    if bundles and (not progress.exists() or bundles[-1].stat().st_mtime >= progress.stat().st_mtime):
        content = read_bundle(bundles[-1]).content
        score = content["benchmark"]["scores"]["mean_reward"]
        figures |= {"status": content["status"], "score": score["value"], "bundle": str(bundles[-1])}
    return figures


def _line(figures: dict[str, Any]) -> str:
    if "done" not in figures:
        return f"{figures['benchmark']}: not started"
    score = "" if figures.get("score") is None else f", score {figures['score']:.4f}"
    eta = "" if figures.get("eta_seconds") in (None, 0) else f", {figures['eta_seconds']:,} s to go"
    ended = f", {figures['status']}" if "status" in figures else ""
    counts = f"{figures['done']:,} of {figures['total']:,} samples, {figures['errors']:,} errors"
    return f"{figures['benchmark']}: {counts}{score}, {figures['samples_per_second']:,.1f}/s{eta}{ended}"
