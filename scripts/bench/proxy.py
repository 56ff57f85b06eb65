"""The adapter proxy: the untouched harness's rate with it and without, and its memory over 100,000 requests.

scripts/testbed up hub harness hosting; eval "$(scripts/testbed env)"; python -m scripts.bench.proxy
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import aiohttp

from nemo_evaluator.cli import loop
from nemo_evaluator.proxy.config import AdapterConfig
from nemo_evaluator.proxy.server import Proxy
from nemo_evaluator.proxy.upstream import Endpoint
from scripts.bench.world import ROOT, fake_server, rate, report

ROUNDS = 2
CONNECTIONS = 64
ALL_ON = {"use_caching": "true", "use_request_logging": "true", "use_response_logging": "true"}
LIMITS = {"max_logged_requests": "10", "max_logged_responses": "10"}
OFF = {"use_caching": "false"}


def speed() -> bool:
    """Alternating rounds, the best of each: whatever else the machine does then strikes all three."""
    ours, published = Path(os.environ["NEL_TEST_HOSTING"]), Path(os.environ["NEL_TEST_HARNESS"])
    direct, proxied, adapter = [], [], []
    with fake_server(answer="Six times seven is 42. #### 42") as url:
        for _ in range(ROUNDS):
            direct.append(harness_rate(ours, url, OFF))
            proxied.append(harness_rate(ours, url, ALL_ON | LIMITS))
            adapter.append(harness_rate(published, url, OFF))
    share, factor = max(proxied) / max(direct), max(proxied) / max(adapter)
    measured = (
        f"{max(proxied):,.0f}/s, {share:.2f} of {max(direct):,.0f}/s direct, {factor:.1f} x {max(adapter):,.0f}/s"
    )
    return report(
        "proxy, caching and logging, gsm8k",
        measured,
        ">= 0.5 of direct, >= 5 x published",
        share >= 0.5 and factor >= 5,
    )


def harness_rate(commands: Path, url: str, adapter: dict[str, str]) -> float:
    """Requests a second between the first and the last of a run that the endpoint saw."""
    call(url, "/__control", {"logs": True, "reset_log": True})
    settings = {
        "config.params.parallelism": str(CONNECTIONS),
        "config.params.request_timeout": "600",
        "config.params.extra.tokenizer": "example/small-bpe",
        "config.params.extra.tokenizer_backend": "huggingface",
        **{f"target.api_endpoint.adapter_config.{key}": value for key, value in adapter.items()},
    }
    with tempfile.TemporaryDirectory() as folder:
        flags = {"eval_type": "gsm8k", "model_id": "m", "model_type": "completions", "output_dir": f"{folder}/out"}
        flags |= {"model_url": f"{url}/completions", "overrides": ",".join(f"{k}={v}" for k, v in settings.items())}
        command = [str(commands / "nemo-evaluator"), "run_eval"]
        command += [part for flag, value in flags.items() for part in (f"--{flag}", value)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(commands))
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    times = [entry["time"] for entry in call(url, "/__log")["log"]]
    return (len(times) - 1) / (max(times) - min(times))


def environment(commands: Path) -> dict[str, str]:
    """The published one finds the harness's own command on PATH, as after activating its environment."""
    hub = {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
    hub |= {"HF_ENDPOINT": os.environ["NEL_TEST_HUB"], "HF_HUB_DISABLE_XET": "1"}
    return {**os.environ, **hub, "NEMO_EVALUATOR_TELEMETRY_LEVEL": "0"}


def call(url: str, path: str, body: Any = None) -> Any:
    request = urllib.request.Request(
        url.removesuffix("/v1") + path, None if body is None else json.dumps(body).encode()
    )
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def memory() -> bool:
    """A proxy in a process of its own; every question is another one, so that all of them are kept."""
    with fake_server() as url, tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        command = [sys.executable, "-m", "scripts.bench.proxy", url, folder]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None and process.stdout is not None
            proxy, done = process.stdout.readline().strip(), 0
            resident = []
            for requests in (1_000, 100_000):
                loop.run(ask(proxy, done, requests - done))
                done = requests
                resident.append(resident_megabytes(process.pid))
            process.stdin.close()
    grown = resident[1] - resident[0]
    measured = f"{resident[0]} MB -> {resident[1]} MB, grows by {grown} MB"
    return report("proxy memory, 1,000 -> 100,000 requests", measured, "< 50 MB", grown < 50)


async def ask(url: str, first: int, requests: int) -> None:
    numbers = iter(range(first, first + requests))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONNECTIONS)) as session:

        async def one() -> None:
            content = f"What is {next(numbers)} times seven? Think step by step and end with the number."
            body = {"model": "m", "messages": [{"role": "user", "content": content}]}
            async with session.post(url, json=body) as reply:
                assert reply.status == 200
                await reply.read()

        await rate(one, requests, CONNECTIONS)


def resident_megabytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1_000_000


async def serve(url: str, folder: Path) -> None:
    """Until the standard input ends."""
    on = AdapterConfig.of({"use_request_logging": True, "max_logged_requests": 10, "log_failed_requests": True})
    async with Proxy(on, Endpoint(f"{url}/chat/completions", parallelism=CONNECTIONS), folder, {}) as proxy:
        print(proxy.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


def main() -> bool:
    return all([memory(), speed()])


if __name__ == "__main__":
    if len(sys.argv) == 3:
        loop.run(serve(sys.argv[1], Path(sys.argv[2])))
    else:
        sys.exit(0 if main() else 1)
