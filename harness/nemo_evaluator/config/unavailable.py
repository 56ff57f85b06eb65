"""Keys and types of larger set-ups, refused by name, so that none is ever accepted and then ignored."""

from typing import Any

from nemo_evaluator.config.keypath import KeyPath

_NO_SERVERS = "start the server yourself and use type api"

SERVICE_TYPES = dict.fromkeys(("vllm", "sglang", "nim", "docker_model", "dynamo"), _NO_SERVERS) | dict.fromkeys(
    ("gym", "nat", "custom"), "only endpoints of models are services"
)
SOLVER_TYPES = dict.fromkeys(
    ("harbor", "agent", "tool_calling", "gym_delegation", "nat", "openclaw", "container", "oracle"),
    "agents need a sandbox",
)
CLUSTER_TYPES = dict.fromkeys(("slurm", "docker"), "runs happen on this machine")

SERVICE_KEYS = {
    "health_path": "the first request shows whether the endpoint answers",
    "max_input_tokens": "prompts are sent whole",
    "tokenizer": "the server counts tokens",
}
PROXY_KEYS = dict.fromkeys(
    ("interceptors", "verbose", "model_traffic", "finish_reason_fixup"), "it comes with the adapter proxy"
) | {"retry_on_status": "408, 409, 429 and 5xx are retried"}
BENCHMARK_KEYS = {
    "skip_failed": "use max_error_rate",
    "max_system_retries": "use proxy.max_retries of the service",
    "fewshot": "where a benchmark takes it, set it in params",
    "context_window": "use max_output_tokens of the service",
    "instruction_template": "the prompt is the benchmark's own",
    "verifier": "a benchmark verifies by its own scorer",
    "scoring": "a benchmark scores by its own scorer",
    "sandbox": "no benchmark runs in a sandbox",
    "playbook": "write the benchmark out",
}
SOLVER_KEYS = {"image_detail": "answers are asked for with text only"}
CLUSTER_KEYS = dict.fromkeys(("gpus", "max_memory", "container_env"), "runs are processes of this machine")
OUTPUT_KEYS = {
    "report": "the bundle and results.jsonl hold all figures",
    "export": "the files of a run are plain JSON to send on",
    "export_config": "the files of a run are plain JSON to send on",
    "trajectories": "trajectories.jsonl is always written",
}
TOP_KEYS = {"sandboxes": "no benchmark runs in a sandbox"}


def unavailable_key(path: KeyPath) -> str | None:
    """What to do instead, for a key that exists elsewhere but not here."""
    key = str(path[-1])
    match path:
        case (_,):
            return TOP_KEYS.get(key)
        case ("services", _, _):
            return SERVICE_KEYS.get(key)
        case ("services", _, "proxy", _):
            return PROXY_KEYS.get(key)
        case ("benchmarks", _, _):
            return BENCHMARK_KEYS.get(key)
        case ("benchmarks", _, "solver", _):
            return SOLVER_KEYS.get(key)
        case ("cluster", _):
            return CLUSTER_KEYS.get(key)
        case ("output", _):
            return OUTPUT_KEYS.get(key)
    return None


def unavailable_type(path: KeyPath, value: Any) -> str | None:
    """The same for the value of a `type`, and for a protocol."""
    match path:
        case ("services", _, "type"):
            return SERVICE_TYPES.get(str(value))
        case ("services", _, "protocol") if value == "responses":
            return "requests go to /chat/completions or /completions"
        case ("benchmarks", _, "solver", "type"):
            return SOLVER_TYPES.get(str(value))
        case ("cluster", "type"):
            return CLUSTER_TYPES.get(str(value))
    return None
