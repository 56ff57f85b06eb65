"""What `nel eval run --dry-run` prints."""

import json
from collections.abc import Iterator

import yaml

from nemo_evaluator.config.load import Loaded
from nemo_evaluator.config.secrets import secret_values
from nemo_evaluator.masking import masked, redact
from nemo_evaluator.suite import Entry


async def plan_lines(loaded: Loaded, entries: list[Entry]) -> list[str]:
    """The resolved config with secrets masked, then for each benchmark what would be asked first."""
    lines = [yaml.safe_dump(masked(loaded.composed), sort_keys=False, allow_unicode=True)]
    for entry in entries:
        lines += [*_facts(entry), await _first_request(entry), ""]
    secrets = secret_values(loaded.config)
    return [redact(line, secrets) for line in lines]


def _facts(entry: Entry) -> Iterator[str]:
    plan, settings = entry.evaluation.plan, entry.evaluation.settings
    problems = f"{len(plan.problems):,} of {plan.dataset_size:,} problems x {plan.n_repeats}"
    yield f"{entry.label}: {len(plan):,} samples ({problems}), {settings.max_concurrent} at once"
    yield f"  asks {entry.evaluation.solver.endpoint or 'a custom solver'}"
    yield f"  writes {entry.folder}"


async def _first_request(entry: Entry) -> str:
    env, solver, plan = entry.evaluation.env, entry.evaluation.solver, entry.evaluation.plan
    if not plan.problems:
        return "  asks nothing: no problem is in range"
    request = solver.preview(await env.seed(plan.problems[0]))
    return f"  first request: {json.dumps(request, indent=2, ensure_ascii=False, default=str)}"
