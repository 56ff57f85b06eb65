"""`python -m tests.golden.regenerate`: write the plans anew, to be read as a diff before they are committed."""

import json
from pathlib import Path
from typing import Any

from nemotron.config import compose_suite, suite_names
from nemotron.plan import Code, Place, build_plan
from nemotron.suite import parse_suite

PLANS = Path(__file__).parent / "plans"
ENVIRON = {
    "EVAL_MODEL_HANDLE": "my-model",
    "EVAL_RESULTS_DIR": "/mnt/shared/eval/run-a",
    "ENDPOINT_TOKEN": "sk-not-a-real-key",
}
URLS = {"instruct_en": "https://host/v1/chat/completions", "mmlu_prox_chat": "https://host/v1/chat/completions"}


def plan_of(suite: str) -> dict[str, Any]:
    """As it is for a backend that runs images, on a day and a commit that never change."""
    environ = ENVIRON | {"EVAL_ENDPOINT_URL": URLS.get(suite, "https://host/v1/completions")}
    place = Place(environ, Path("/"), is_remote=True, runs_images=True)
    parsed = parse_suite(compose_suite(suite, (), environ), suite)
    return build_plan(parsed, place, code=Code("0.0.0"), created="2026-01-01T00:00:00+00:00").plan


def text_of(suite: str) -> str:
    return json.dumps(plan_of(suite), indent=2) + "\n"


if __name__ == "__main__":
    for name in suite_names():
        (PLANS / f"{name}.json").write_text(text_of(name), encoding="utf-8")
