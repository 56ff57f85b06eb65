"""Every key of adapter_config changes what the proxy does: set, and not set, it is seen from outside."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nemo_evaluator.errors import UsageError
from nemo_evaluator.frameworks.hosted import proxy_of
from nemo_evaluator.frameworks.settings import resolve
from nemo_evaluator.proxy.config import AdapterConfig
from tests.fakes.openai_server import Behaviour, FakeServer, When
from tests.harness.proxy.worlds import Harness, harness, rows

REASONED = "<t>six</t>42"
REQUESTS, RESPONSES = {"use_request_logging": True}, {"use_response_logging": True}
SAVED_REQUESTS, SAVED_RESPONSES = {"save_requests": True}, {"save_responses": True}
PROMPT = {"use_system_prompt": True, "custom_system_prompt": "Be brief."}
REASONING = {"process_reasoning_traces": True, "start_reasoning_token": "<t>", "end_reasoning_token": "</t>"}
PROGRESS = {"use_progress_tracking": True}
NOWHERE = "http://127.0.0.1:9/progress"


class Seen:
    """What three questions left, two of them alike, the last refused."""

    def __init__(self, folder: Path, server: FakeServer, client: Harness, said: list[Any], told: list[str]) -> None:
        self.folder, self.server, self.client, self.said, self.told = folder, server, client, said, told

    def rows(self, name: str) -> int:
        path = self.folder / name
        return len(rows(path)) if path.exists() else 0

    @property
    def first(self) -> dict[str, Any]:
        return self.server.bodies[0]

    @property
    def headers(self) -> dict[str, str]:
        return dict(self.server.log[0].headers)

    @property
    def content(self) -> str:
        return str(self.said[0].content)

    @property
    def metrics(self) -> set[str]:
        return set(self.client.proxy.metrics())

    @property
    def progress(self) -> bool:
        return (self.folder / "progress").exists()


Observed = Callable[[Seen], Any]
KEYS: dict[str, tuple[dict[str, Any], dict[str, Any], Observed]] = {
    "use_caching": ({}, {"use_caching": True}, lambda seen: seen.server.count),
    "caching_dir": (
        {"use_caching": True},
        {"use_caching": True, "caching_dir": "elsewhere"},
        lambda seen: (seen.folder / "elsewhere").exists(),
    ),
    "reuse_cached_responses": (
        {"use_caching": True},
        {"use_caching": True, "reuse_cached_responses": False},
        lambda seen: seen.server.count,
    ),
    "use_request_logging": ({}, REQUESTS, lambda seen: seen.rows("requests.jsonl")),
    "max_logged_requests": (REQUESTS, REQUESTS | {"max_logged_requests": 1}, lambda seen: seen.rows("requests.jsonl")),
    "use_response_logging": ({}, RESPONSES, lambda seen: seen.rows("responses.jsonl")),
    "max_logged_responses": (
        RESPONSES,
        RESPONSES | {"max_logged_responses": 1},
        lambda seen: seen.rows("responses.jsonl"),
    ),
    "save_requests": ({}, SAVED_REQUESTS, lambda seen: seen.rows("requests.jsonl")),
    "max_saved_requests": (
        SAVED_REQUESTS,
        SAVED_REQUESTS | {"max_saved_requests": 1},
        lambda seen: seen.rows("requests.jsonl"),
    ),
    "save_responses": ({}, SAVED_RESPONSES, lambda seen: seen.rows("responses.jsonl")),
    "max_saved_responses": (
        SAVED_RESPONSES,
        SAVED_RESPONSES | {"max_saved_responses": 1},
        lambda seen: seen.rows("responses.jsonl"),
    ),
    "log_failed_requests": ({}, {"log_failed_requests": True}, lambda seen: seen.rows("failed_requests.jsonl")),
    "tracking_requests_stats": ({}, {"tracking_requests_stats": False}, lambda seen: seen.metrics),
    "logging_aggregated_stats_interval": (
        {},
        {"logging_aggregated_stats_interval": 1},
        lambda seen: len([line for line in seen.told if "replies" in line]),
    ),
    "use_progress_tracking": ({}, PROGRESS, lambda seen: seen.progress),
    "progress_tracking_url": (
        PROGRESS,
        PROGRESS | {"progress_tracking_url": NOWHERE},
        lambda seen: bool([line for line in seen.told if "progress_tracking_url" in line]),
    ),
    "progress_tracking_interval": (
        PROGRESS | {"progress_tracking_url": NOWHERE},
        PROGRESS | {"progress_tracking_url": NOWHERE, "progress_tracking_interval": 100},
        lambda seen: len([line for line in seen.told if "progress_tracking_url" in line]) > 1,
    ),
    "use_system_prompt": ({}, PROMPT, lambda seen: seen.first["messages"][0]["role"]),
    "custom_system_prompt": (
        PROMPT,
        PROMPT | {"custom_system_prompt": "Be long."},
        lambda seen: seen.first["messages"][0]["content"],
    ),
    "system_prompt_strategy": (
        PROMPT,
        PROMPT | {"system_prompt_strategy": "append"},
        lambda seen: seen.first["messages"][0]["content"],
    ),
    "params_to_add": ({}, {"params_to_add": {"seed": 7}}, lambda seen: seen.first.get("seed")),
    "params_to_remove": ({}, {"params_to_remove": ["top_p"]}, lambda seen: "top_p" in seen.first),
    "params_to_rename": ({}, {"params_to_rename": {"top_p": "p"}}, lambda seen: "p" in seen.first),
    "headers_to_add": ({}, {"headers_to_add": {"X-Project": "p"}}, lambda seen: seen.headers.get("x-project")),
    "headers_to_remove": ({}, {"headers_to_remove": ["Authorization"]}, lambda seen: "authorization" in seen.headers),
    "headers_to_rename": ({}, {"headers_to_rename": {"Authorization": "Key"}}, lambda seen: "key" in seen.headers),
    "use_reasoning": ({}, {"use_reasoning": True, "end_reasoning_token": "</t>"}, lambda seen: seen.content),
    "process_reasoning_traces": ({}, REASONING, lambda seen: seen.content),
    "start_reasoning_token": (
        REASONING,
        REASONING | {"start_reasoning_token": None},
        lambda seen: seen.said[0].json["choices"][0]["message"]["reasoning_content"],
    ),
    "end_reasoning_token": (REASONING, REASONING | {"end_reasoning_token": "4"}, lambda seen: seen.content),
    "include_if_reasoning_not_finished": (
        REASONING | {"end_reasoning_token": "</never>"},
        REASONING | {"end_reasoning_token": "</never>", "include_if_reasoning_not_finished": False},
        lambda seen: seen.content,
    ),
    "track_reasoning": (REASONING, REASONING | {"track_reasoning": False}, lambda seen: seen.metrics),
    "use_raise_client_errors": ({}, {"use_raise_client_errors": True}, lambda seen: seen.client.proxy.failure is None),
}
ELSEWHERE = {"endpoint_type", "output_dir"}
"""They are about the task's settings and folder, below."""


async def seen_with(folder: Path, config: dict[str, Any], observed: Observed, caplog: Any) -> Any:
    caplog.clear()
    folder.mkdir()
    config = dict(config)
    if "caching_dir" in config:
        config["caching_dir"] = str(folder / config["caching_dir"])
    async with FakeServer(Behaviour(status=400, when=When(prompt="bad")), answer=REASONED) as server:
        async with harness(server, folder, **config) as client:
            messages = [{"role": "system", "content": "own"}] if config.get("use_system_prompt") else []
            said = [
                await client.ask(messages=[*messages, {"role": "user", "content": text}], top_p=0.5)
                for text in ("Why?", "Why?", "bad")
            ]
        return observed(Seen(folder, server, client, said, list(caplog.messages)))


@pytest.mark.parametrize("key", KEYS)
async def test_it_makes_a_difference(tmp_path, caplog, key):
    caplog.set_level(logging.INFO)
    without, with_it, observed = KEYS[key]
    assert without.get(key) != with_it.get(key)
    before = await seen_with(tmp_path / "without", without, observed, caplog)
    after = await seen_with(tmp_path / "with", with_it, observed, caplog)
    assert before != after


def test_no_key_is_left_out():
    assert KEYS.keys() | ELSEWHERE == AdapterConfig.model_fields.keys()


def settings(tmp_path: Path, **adapter: Any) -> Any:
    endpoint = {"model_id": "m", "type": "chat", "url": "http://127.0.0.1:9/v1/chat/completions"}
    config = {"type": "tiny_choice", "output_dir": str(tmp_path / "out")}
    return resolve({"config": config, "target": {"api_endpoint": endpoint | {"adapter_config": adapter}}}, {})


def test_output_dir_is_where_its_files_are(tmp_path):
    run = settings(tmp_path, output_dir=str(tmp_path / "there"), use_caching=True)
    assert proxy_of(run, {}) is not None
    assert (tmp_path / "there").is_dir() and not (tmp_path / "out").exists()


def test_endpoint_type_may_not_contradict_the_endpoint_s(tmp_path):
    settings(tmp_path, endpoint_type="chat")
    with pytest.raises(UsageError, match="'completions' is not the endpoint's 'chat'"):
        settings(tmp_path, endpoint_type="completions")
