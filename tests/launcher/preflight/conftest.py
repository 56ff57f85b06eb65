import asyncio

import pytest

from nemotron.preflight import Finding, preflight

TOKEN = "sk-not-a-real-key"


@pytest.fixture
def look(tmp_path):
    """Runs the preflight of a plan against an endpoint, beside the loop that serves it."""

    async def run(url: str, *tasks: str, environ=None, kind="completions", is_remote=False, **plan) -> list[Finding]:
        made = plan_of(url, tasks or ("gsm8k",), kind, str(tmp_path / "results"), **plan)
        return await asyncio.to_thread(
            preflight, made, environ or {}, is_remote=is_remote, patience=2, sleep=lambda _: None
        )

    return run


def plan_of(
    url,
    tasks,
    kind="completions",
    output_dir="/mnt/eval",
    model="fake-model",
    key=None,
    image=None,
    extra=None,
    datasets=(),
):
    path = "/chat/completions" if kind == "chat" else "/completions"
    return {
        "output_dir": output_dir,
        "model": {
            "id": model,
            "endpoint_url": url + path,
            "endpoint_url_variable": None,
            "endpoint_type": kind,
            "api_key_name": key,
        },
        "harness": {"image": image},
        "tasks": [{"name": name, "params": {"extra": extra or {}}, "datasets": list(datasets)} for name in tasks],
    }
