"""results.yml, run_config.yml and eval_factory_metrics.json, the same for every harness."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from nemo_evaluator.api.api_dataclasses import EvaluationResult
from nemo_evaluator.frameworks.settings import RunConfig
from nemo_evaluator.models.payload import redact_url
from nemo_evaluator.results.write import replacing, write_json


@dataclass(frozen=True, slots=True)
class Measured:
    """Of one run of a harness, its start and its scoring included."""

    started: datetime
    ended: datetime
    peak_memory_bytes: int
    peak_tree_memory_bytes: int


def write_run_config(run: RunConfig) -> None:
    """What `--run_config` takes again; an address that is a secret is left out of it."""
    run.output_dir.mkdir(parents=True, exist_ok=True)
    _write_yaml(run.output_dir / "run_config.yml", _shown(run))


def write_results(run: RunConfig, command: str, result: EvaluationResult) -> None:
    shown = _shown(run)
    document = {
        "command": command,
        "config": shown["config"],
        "results": result.model_dump(exclude_none=True),
        "target": shown["target"],
    }
    _write_yaml(run.output_dir / "results.yml", document)


def write_metrics(run: RunConfig, measured: Measured, proxied: Mapping[str, Any]) -> None:
    seconds = (measured.ended - measured.started).total_seconds()
    asking = float(proxied.get("response_stats", {}).get("inference_time", 0.0))
    evaluation = {
        "runtime_seconds": seconds,
        "start_time": _utc(measured.started),
        "end_time": _utc(measured.ended),
        "peak_memory_bytes": measured.peak_memory_bytes,
        "peak_tree_memory_bytes": measured.peak_tree_memory_bytes,
        "inference_time_seconds": asking,
        "scoring_time_seconds": max(0.0, seconds - asking),
    }
    write_json(run.output_dir / "eval_factory_metrics.json", {**proxied, "evaluation": evaluation})


def shown_yaml(run: RunConfig) -> str:
    return yaml.safe_dump(_shown(run), sort_keys=False, allow_unicode=True)


def _shown(run: RunConfig) -> dict[str, Any]:
    document = run.model_dump()
    document["target"]["api_endpoint"]["url"] = redact_url(run.endpoint.url)
    headers = document["target"]["api_endpoint"]["adapter_config"].get("headers_to_add") or {}
    for name in headers:
        headers[name] = "***"
    return document


def _write_yaml(path: Path, document: Mapping[str, Any]) -> None:
    with replacing(path) as file:
        file.write(yaml.safe_dump(dict(document), sort_keys=True, allow_unicode=True).encode())


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
