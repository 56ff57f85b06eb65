"""What can be known before the first task: each finding is one line, what is wrong, why it matters, what to do."""

from __future__ import annotations

import difflib
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Mapping

from nemo_evaluator.direct.hub import check_hub
from nemo_evaluator.direct.plan import Plan, Task
from nemo_evaluator.direct.probe import Answer, Endpoint

PATIENCE_SECONDS = 900.0
"""For an endpoint that is still loading its model."""
PAUSE_SECONDS = 2.0
LIST_SECONDS = 120.0
PROBE_TEXT = "The quick brown fox jumps over the lazy dog."
LOGPROB_TASK = re.compile(
    r"(adlr_)?(arc_|hellaswag|piqa|winogrande|openbookqa|boolq|race(_|$)|copa|social_iqa|commonsense_qa|truthfulqa(_mc|$)"
    r"|lambada|milu_|global_mmlu)|mmlu_logits|(bbh|musr|gpqa)$"
)
FOR_CHAT = re.compile(r"_(chat|instruct)(_|$)")
ALL_SUBSETS = {
    "mmlu_prox_completions": "mmlu_prox_en",
    "mmlu_prox_chat": "mmlu_prox_en",
    "global_mmlu": "global_mmlu_en",
    "global_mmlu_full": "global_mmlu_full_en",
}
"""Families of tasks, with the name of one of each."""
TASK_LINE = re.compile(r"^\s*\* (\S+)\s*$", re.MULTILINE)

Sleep = Callable[[float], None]
Say = Callable[[str], None]


def preflight(
    plan: Plan,
    endpoint: Endpoint,
    executable: Path,
    environ: Mapping[str, str],
    sleep: Sleep,
    say: Say,
    patience: float = PATIENCE_SECONDS,
) -> list[str]:
    """The findings; any of them is a reason not to start."""
    return [
        *check_subsets(plan),
        *check_task_kinds(plan),
        *check_storage(plan.output_dir),
        *check_known_tasks(plan, executable, environ),
        *check_hub(plan, environ),
        *check_endpoint(plan, endpoint, sleep, say, patience),
    ]


def check_subsets(plan: Plan) -> list[str]:
    if plan.allow_all_subsets:
        return []
    return [
        f"Task {task.name} without params.task runs every subset: some 350,000 requests; pin one, such as "
        f"params.task={ALL_SUBSETS[task.name]}, or allow it with allow_all_subsets=true."
        for task in plan.tasks
        if task.name in ALL_SUBSETS and not task.params.get("task")
    ]


def check_task_kinds(plan: Plan) -> list[str]:
    if plan.model.endpoint_type != "chat":
        return []
    return [
        f"Task {task.name} compares log-probabilities of given texts: a chat endpoint has none of them; use the "
        "/v1/completions endpoint of the model, or a task for chat such as gsm8k_cot_instruct or mmlu_instruct."
        for task in plan.tasks
        if needs_logprobs(task)
    ]


def needs_logprobs(task: Task) -> bool:
    name = task.name.rpartition(".")[2]
    return bool(LOGPROB_TASK.match(name)) and not FOR_CHAT.search(name)


def check_storage(output_dir: Path) -> list[str]:
    """Written for real: neither permissions nor quotas can be judged by looking."""
    folder = output_dir
    while not folder.exists():
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=str(folder)) as file:
            file.write(b"\0" * 4096)
            file.flush()
    except OSError as error:
        return [
            f"{folder} cannot be written ({error.strerror}): no result could be kept; mount it writable, make room, "
            "or choose another EVAL_RESULTS_DIR."
        ]
    return []


def check_known_tasks(plan: Plan, executable: Path, environ: Mapping[str, str]) -> list[str]:
    """Silent where the image's own list cannot be read."""
    try:
        listed = subprocess.run(
            [str(executable), "ls"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=LIST_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    known = TASK_LINE.findall(listed.stdout.decode("utf-8", "replace"))
    return [
        f"Task {task.name} is not in this harness: it would fail at once; {_nearest(task.name, known)}"
        for task in plan.tasks
        if known and task.name.rpartition(".")[2] not in known
    ]


def check_endpoint(plan: Plan, endpoint: Endpoint, sleep: Sleep, say: Say, patience: float) -> list[str]:
    answer = wait_until_loaded(endpoint, sleep, say, patience)
    if answer.status is None or answer.may_be_loading:
        return [
            f"The endpoint does not answer ({answer.said}): no task can run; start it, or correct EVAL_ENDPOINT_URL."
        ]
    if refused := check_token(plan, answer):
        return refused
    if unlisted := check_listed(plan, answer):
        return unlisted
    return check_request(plan, endpoint) or check_logprobs(plan, endpoint)


def wait_until_loaded(endpoint: Endpoint, sleep: Sleep, say: Say, patience: float) -> Answer:
    """The list of models, as soon as the server is up; what it said last when it is not in time."""
    deadline = time.monotonic() + patience
    answer = endpoint.models()
    if answer.may_be_loading:
        say(f"preflight: the endpoint is not ready yet ({answer.said}), waiting up to {patience:.0f} s for it")
    while answer.may_be_loading and time.monotonic() < deadline:
        sleep(min(PAUSE_SECONDS, max(0.0, deadline - time.monotonic())))
        answer = endpoint.models()
    return answer


def check_token(plan: Plan, answer: Answer) -> list[str]:
    if answer.status not in (401, 403):
        return []
    name = plan.model.api_key_name
    what = f"refuses the token of {name}" if name else "wants a token, and EVAL_API_KEY_NAME is null"
    return [
        f"The endpoint {what} (HTTP {answer.status}: {answer.message}): every request would fail; "
        f"{'put a valid token into ' + name if name else 'name the variable that holds one with EVAL_API_KEY_NAME'}."
    ]


def check_listed(plan: Plan, answer: Answer) -> list[str]:
    """Only a list that is one can be held against the handle: some servers have none."""
    listed = _list_of(answer.document.get("data"))
    ids = [str(item["id"]) for item in listed if isinstance(item, dict) and "id" in item]
    if answer.status != 200 or not ids or plan.model.id in ids:
        return []
    return [
        f"The endpoint does not serve {plan.model.id!r}: every request would get HTTP 404; "
        f"{_nearest(plan.model.id, ids)}, and set EVAL_MODEL_HANDLE to it."
    ]


def check_request(plan: Plan, endpoint: Endpoint) -> list[str]:
    """One real request, as small as they come."""
    body: dict[str, Any] = {"model": plan.model.id}
    if plan.model.endpoint_type == "chat":
        body["messages"] = [{"role": "user", "content": PROBE_TEXT}]
    else:
        body["prompt"] = PROBE_TEXT
    answer = endpoint.ask({**body, "max_tokens": 1})
    if answer.status == 400 and "max_completion_tokens" in answer.message:
        answer = endpoint.ask({**body, "max_completion_tokens": 16})
    if refused := check_token(plan, answer):
        return refused
    if answer.status == 200 and _list_of(answer.document.get("choices")):
        return []
    said = answer.message or answer.text or "nothing"
    return [
        f"A first request failed ({'no answer' if answer.status is None else f'HTTP {answer.status}'}: {said}): "
        "every other one would, too; mend the endpoint, or correct EVAL_ENDPOINT_URL and EVAL_MODEL_HANDLE."
    ]


def check_logprobs(plan: Plan, endpoint: Endpoint) -> list[str]:
    names = [task.name for task in plan.tasks if needs_logprobs(task)]
    if not names or plan.model.endpoint_type != "completions":
        return []
    answer = endpoint.ask(
        {"model": plan.model.id, "prompt": PROBE_TEXT, "max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0}
    )
    flaw = _flaw_of_echo(answer)
    if flaw is None:
        return []
    return [
        f"The endpoint has no log-probabilities of prompts ({flaw}): {', '.join(names)} would score chance without any "
        "error; serve the model with echo and logprobs on /v1/completions (vLLM does), or choose generative tasks."
    ]


def _flaw_of_echo(answer: Answer) -> str | None:
    """A prompt of n tokens gives n log-probabilities of its own, null first, and then the generated ones."""
    if answer.status != 200:
        return f"HTTP {answer.status}: {answer.message}"
    try:
        values = answer.document["choices"][0]["logprobs"]["token_logprobs"]
    except (KeyError, IndexError, TypeError):
        return "the reply to echo with logprobs has no token_logprobs"
    if len(_list_of(values)) < 4:
        return "echo is ignored"
    if values[0] is not None:
        return "the first token has a log-probability, so the prompt is not echoed from its start"
    rest = values[1:]
    if not all(isinstance(value, (int, float)) for value in rest):
        return "some tokens have none"
    if not any(rest):
        return "all of them are 0"
    return None


def _list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    shown = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
    return f"did you mean {near[0]!r}? It has {shown}" if near else f"it has {shown}"
