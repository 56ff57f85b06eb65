"""run_manifest.json and what else describes the run: pure documents."""

from __future__ import annotations

import re
import shlex
from datetime import datetime, timezone
from typing import Any, Mapping

from nemo_evaluator.direct.command import Command, adapter_config
from nemo_evaluator.direct.masking import Masker, redact_url
from nemo_evaluator.direct.plan import Plan, Task

SCHEMA_VERSION = 1
DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")


def manifest(
    plan: Plan,
    url: str,
    commands: Mapping[str, Command],
    packages: Mapping[str, str],
    carried: Mapping[str, Any],
    masker: Masker,
) -> dict[str, Any]:
    """`carried` are tasks of earlier sessions in the same folder, as they were recorded then."""
    name = ".dry-run.json" if plan.dry_run else ".json"
    document = {
        "schema_version": SCHEMA_VERSION,
        "generated_at": now(),
        "mode": plan.mode,
        "dry_run": plan.dry_run,
        "model": {
            "id": plan.model.id,
            "endpoint_url": redact_url(url),
            "endpoint_type": plan.model.endpoint_type,
            "api_key_name": plan.model.api_key_name,
        },
        "harness": {
            "image": plan.harness.image,
            "requested_image": plan.harness.requested_image,
            "image_pinned_by_digest": is_pinned(plan.harness.image),
            "index_digest": plan.harness.index_digest,
            "platform_digest": plan.harness.platform_digest,
            "packages": dict(packages),
        },
        "code": {
            "nemotron_version": plan.code.nemotron_version,
            "git_sha": plan.code.git_sha,
            "git_dirty": plan.code.git_dirty,
        },
        "tasks": {
            **carried,
            **{task.name: _task(plan, task, commands[task.name], masker) for task in plan.tasks},
        },
        "output_dir": str(plan.output_dir),
        "summary_path": str(plan.output_dir / ("summary" + name)),
    }
    masked: dict[str, Any] = masker.mask_document(document)
    return masked


def is_pinned(image: str | None) -> bool:
    """Judged here once more: a plan that claims a pin without one would make a number look citable."""
    return bool(image and DIGEST.search(image))


def printable(command: Command, masker: Masker) -> str:
    return masker.mask_text(" ".join(map(shlex.quote, command.argv)))


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _task(plan: Plan, task: Task, command: Command, masker: Masker) -> dict[str, Any]:
    return {
        "output_dir": str(plan.folder(task)),
        "params": task.params,
        "adapter_config": adapter_config(plan, task),
        "command": printable(command, masker),
    }
