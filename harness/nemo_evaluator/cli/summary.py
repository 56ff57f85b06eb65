"""The last lines of a run. Pure."""

from pathlib import Path
from typing import Any


def summary_lines(label: str, bundle: dict[str, Any], path: Path) -> list[str]:
    """Score with its interval, what became of the samples, tokens and rate, and where the files are.

    Why a run was not completed is said on stderr, once.
    """
    benchmark, runtime = bundle["benchmark"], bundle["benchmark"]["scores"]["runtime"]
    lines = [
        f"{label}: {_score(benchmark)}",
        f"  {_samples(benchmark['states'])}",
        f"  {_tokens(runtime)}, {runtime['steps_per_second']:,.1f} samples/s, {runtime['elapsed_seconds']:,.1f} s",
        f"  {path}",
    ]
    if bundle["status"] != "completed":
        lines.insert(1, f"  {bundle['status'].upper()}")
    return lines


def _score(benchmark: dict[str, Any]) -> str:
    scores = benchmark["scores"]
    named = [name for name in scores if name.startswith("pass@")] or ["mean_reward"]
    shown = ", ".join(f"{name} {_with_interval(scores[name])}" for name in named)
    if any(state.startswith("error:") for state in benchmark["states"]) and scores["mean_reward_over_all"]["n"]:
        shown += f" (errors counted as wrong: {scores['mean_reward_over_all']['value']:.4f})"
    return shown


def _with_interval(score: dict[str, Any]) -> str:
    if score["value"] is None:
        return f"none ({score['reason']})"
    if score["ci_lower"] is None:
        return f"{score['value']:.4f}"
    return f"{score['value']:.4f} [95 % CI {score['ci_lower']:.4f}, {score['ci_upper']:.4f}]"


def _samples(states: dict[str, int]) -> str:
    total = sum(states.values())
    parts = [f"{total:,} samples"]
    parts += [
        f"{state.replace('_', ' ')} {states[state]:,}"
        for state in ("scored", "empty", "answered", "not_asked")
        if states.get(state)
    ]
    if truncated := states.get("truncated", 0):
        parts.append(f"truncated {truncated:,} ({truncated / total:.1%})")
    errors = {state.removeprefix("error:"): n for state, n in states.items() if state.startswith("error:")}
    kinds = f" ({', '.join(f'{kind} {n:,}' for kind, n in errors.items())})" if errors else ""
    return ", ".join(parts) + f", errors {sum(errors.values()):,}{kinds}"


def _tokens(runtime: dict[str, Any]) -> str:
    if runtime["total_prompt_tokens"] is None and runtime["total_completion_tokens"] is None:
        return "tokens not reported"
    return f"tokens {runtime['total_prompt_tokens'] or 0:,} in, {runtime['total_completion_tokens'] or 0:,} out"
