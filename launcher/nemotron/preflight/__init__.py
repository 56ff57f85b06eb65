"""What can be known before a job is submitted.

The job asks the endpoint the same questions again before its first task: what this host cannot reach is said, and not
guessed.
"""

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from nemotron.endpoint import Answer, Endpoint
from nemotron.errors import LauncherError
from nemotron.images.reference import is_file, parse
from nemotron.images.registry import Registry
from nemotron.images.tasks import TaskList, read_tasks
from nemotron.preflight.finding import Finding
from nemotron.preflight.hub import REFUSED, check_hub

__all__ = ["Finding", "check_image", "check_storage", "flaw_of_echo", "needs_logprobs", "preflight"]

PATIENCE_SECONDS = 60.0
"""For an endpoint that is still loading its model; the job waits longer."""
PAUSE_SECONDS = 2.0
LOADING = (502, 503, 504)
PROBE = "The quick brown fox jumps over the lazy dog."
PROBE_WORDS = len(PROBE.split())
SHOWN_TASKS = 8

LOGPROB_TASK = re.compile(
    r"(adlr_)?(arc_|hellaswag|piqa|winogrande|openbookqa|boolq|race|copa|social_iqa|commonsense_qa|truthfulqa|lambada)"
    r"|milu_|global_mmlu|mmlu_logits"
)
"""Tasks that compare log-probabilities of given texts; definitions in images do not say so."""
GENERATIVE = re.compile(r"_(chat|instruct|cot|gen)(_|$)")


def preflight(
    plan: Mapping[str, Any],
    environ: Mapping[str, str],
    *,
    is_remote: bool,
    patience: float = PATIENCE_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Finding]:
    """`environ` is what the job will have, secrets included; `is_remote` says that paths mean nothing here.

    The image is apart, in `check_image`: what a registry says of it holds for every job that runs it.
    """
    findings = [] if is_remote else list(check_storage(Path(plan["output_dir"])))
    findings += check_hub(plan, environ, sees_cache=not is_remote and plan["harness"]["image"] is None)
    model = plan["model"]
    url = model["endpoint_url"] or environ[model["endpoint_url_variable"]]
    token = environ.get(model["api_key_name"]) if model["api_key_name"] else None
    with Endpoint(url, token) as endpoint:
        findings += check_endpoint(plan, endpoint, patience, sleep)
    return findings


def check_storage(output_dir: Path) -> Iterator[Finding]:
    """Written for real, since neither permissions nor quotas can be judged by looking; nothing is left behind."""
    folder = next(path for path in (output_dir, *output_dir.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
            file.flush()
    except OSError as error:
        yield Finding(
            f"{folder} cannot be written ({error.strerror})",
            "no result could be kept",
            "make room, mount it writable, or choose another EVAL_RESULTS_DIR",
        )


def check_image(plan: Mapping[str, Any], registry: Registry) -> Iterator[Finding]:
    """The tasks that the image says it has; a list that cannot be read is no reason to stop."""
    image = plan["harness"]["image"]
    if image is None or is_file(image):
        return
    try:
        listed = read_tasks(registry, parse(image), wanted=[task["name"] for task in plan["tasks"]])
    except LauncherError as error:
        yield Finding(
            f"The tasks of {image} cannot be read ({_without_stop(str(error))})",
            "a task that it lacks would fail in the job",
            "compare with `nemo-evaluator ls` in the image",
            "note",
        )
        return
    for task in plan["tasks"]:
        yield from check_task(task["name"], plan["model"]["endpoint_type"], listed, image)


def check_task(name: str, endpoint_type: str, listed: TaskList, image: str) -> Iterator[Finding]:
    if not listed.frameworks:
        return  # it keeps its tasks elsewhere, so nothing is known
    if not listed.offers(name):
        yield Finding(
            f"Task {name!r} is not in {image}",
            "it would fail at once",
            _suggestion(name, listed.names) + f"; all are in `nemotron images tasks {image}`",
        )
    elif (task := listed.find(name)) and task.endpoint_types and endpoint_type not in task.endpoint_types:
        yield Finding(
            f"Task {name!r} is for endpoints of type {' or '.join(task.endpoint_types)}, this one is {endpoint_type}",
            "the harness would refuse it",
            "choose another task, or set EVAL_ENDPOINT_TYPE and the path of EVAL_ENDPOINT_URL",
        )


def check_endpoint(
    plan: Mapping[str, Any], endpoint: Endpoint, patience: float, sleep: Callable[[float], None]
) -> Iterator[Finding]:
    """One thing after the other: a server that refuses the token has nothing to say about models."""
    answer = _loaded(endpoint, patience, sleep)
    if answer.status is None or answer.status in LOADING:
        yield unreached(endpoint.shown, answer)
        return
    model, tasks = plan["model"], [task["name"] for task in plan["tasks"]]
    found = refused(answer, model["api_key_name"]) or unlisted(answer, model["id"])
    if found is None:
        first = endpoint.ask(smallest_request(model["id"], model["endpoint_type"]))
        if first.status == 400 and "max_completion_tokens" in first.text:
            first = endpoint.ask(smallest_request(model["id"], model["endpoint_type"], limit="max_completion_tokens"))
        found = refused(first, model["api_key_name"]) or unanswered(first)
    scoring = [name for name in tasks if needs_logprobs(name)]
    if found is None and scoring:
        found = without_logprobs(endpoint, model, scoring)
    if found is not None:
        yield found


def unreached(host: str, answer: Answer) -> Finding:
    state = "is not ready" if answer.status in LOADING else "cannot be reached from here"
    return Finding(
        f"{host} {state} ({answer.said})",
        "model, token and log-probabilities were not checked",
        "the job checks them before its first task, correct EVAL_ENDPOINT_URL if its host cannot reach it either",
        "note",
    )


def refused(answer: Answer, key_name: str | None) -> Finding | None:
    if answer.status not in REFUSED:
        return None
    if key_name is None:
        what, action = "The endpoint wants a token", "name the variable that holds it with EVAL_API_KEY_NAME"
    else:
        what, action = f"The endpoint refuses the token in {key_name}", f"put a valid one into {key_name}"
    return Finding(f"{what} ({answer.said})", "every request would fail", action)


def unlisted(answer: Answer, model: str) -> Finding | None:
    """Some servers have no list, and the request that follows tells as well."""
    data = answer.content.get("data") if isinstance(answer.content, dict) else None
    served = [str(item["id"]) for item in data or [] if isinstance(item, dict) and "id" in item]
    if answer.status != 200 or not served or model in served:
        return None
    return Finding(
        f"The endpoint does not serve {model!r}",
        "every request would get HTTP 404",
        f"set EVAL_MODEL_HANDLE to the served name; {_suggestion(model, served)}",
    )


def smallest_request(model: str, endpoint_type: str, limit: str = "max_tokens") -> dict[str, Any]:
    asked = {"messages": [{"role": "user", "content": PROBE}]} if endpoint_type == "chat" else {"prompt": PROBE}
    return {"model": model, **asked, limit: 16 if limit == "max_completion_tokens" else 1}


def unanswered(answer: Answer) -> Finding | None:
    choices = answer.content.get("choices") if isinstance(answer.content, dict) else None
    if answer.status == 200 and isinstance(choices, list) and choices:
        return None
    return Finding(
        f"A first request failed ({answer.said})",
        "all others would, too",
        "mend the endpoint, or correct EVAL_ENDPOINT_URL and EVAL_MODEL_HANDLE",
    )


def needs_logprobs(task: str) -> bool:
    name = task.rpartition(".")[2]
    return LOGPROB_TASK.match(name) is not None and GENERATIVE.search(name) is None


def without_logprobs(endpoint: Endpoint, model: Mapping[str, Any], tasks: list[str]) -> Finding | None:
    if model["endpoint_type"] == "chat":
        flaw = "a chat endpoint has none"
    else:
        body = {"model": model["id"], "prompt": PROBE, "max_tokens": 1, "temperature": 0, "logprobs": 1, "echo": True}
        flaw = flaw_of_echo(endpoint.ask(body)) or ""
    if not flaw:
        return None
    return Finding(
        f"The endpoint gives no log-probabilities of prompts: {flaw}",
        f"{', '.join(tasks)} would score chance, with no error",
        "use a /v1/completions server that honours echo with logprobs, such as vLLM, or choose generative tasks",
    )


def flaw_of_echo(answer: Answer) -> str | None:
    """A prompt of n tokens comes back with n values, null first, and then those of what was generated."""
    if answer.status != 200:
        return answer.said
    try:
        values = answer.content["choices"][0]["logprobs"]["token_logprobs"]
    except (KeyError, IndexError, TypeError):
        return "the reply has no token_logprobs"
    expected = _prompt_tokens(answer.content) or PROBE_WORDS
    if not isinstance(values, list) or len(values) < expected:
        count = len(values) if isinstance(values, list) else 0
        return f"echo is ignored, {count} values came for a prompt of {expected} tokens or more"
    if values[0] is not None:
        return "the first token has a value, so the prompt is not echoed from its start"
    if not all(isinstance(value, int | float) for value in values[1:]):
        return "tokens after the first have none"
    return None if any(values[1:]) else "all of them are 0"


def _prompt_tokens(content: Mapping[str, Any]) -> int | None:
    usage = content.get("usage")
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return tokens if isinstance(tokens, int) and tokens > 0 else None


def _loaded(endpoint: Endpoint, patience: float, sleep: Callable[[float], None]) -> Answer:
    """The list of models once the server is up, or what it said last."""
    deadline = time.monotonic() + patience
    answer = endpoint.models()
    while answer.status in LOADING and time.monotonic() < deadline:
        sleep(PAUSE_SECONDS)
        answer = endpoint.models()
    return answer


def _suggestion(name: str, known: tuple[str, ...] | list[str]) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.4)
    shown = ", ".join(known[:SHOWN_TASKS]) + (", …" if len(known) > SHOWN_TASKS else "")
    return f"the nearest is {near[0]!r}" if near else f"there are {shown}"


def _without_stop(text: str) -> str:
    return text.rstrip(".")
