"""One task of an installed wheel: its command behind the proxy, its parser over what it wrote."""

import asyncio
import importlib
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from math import ceil
from pathlib import Path

from nemo_evaluator.api.api_dataclasses import EvaluationResult
from nemo_evaluator.environments.told import told
from nemo_evaluator.errors import RunFailed
from nemo_evaluator.frameworks.command import render
from nemo_evaluator.frameworks.files import Measured, write_metrics, write_results, write_run_config
from nemo_evaluator.frameworks.settings import RunConfig
from nemo_evaluator.frameworks.tree import resident_bytes, terminate
from nemo_evaluator.frameworks.wheels import NAMESPACE
from nemo_evaluator.models.payload import redact_url
from nemo_evaluator.proxy.server import Proxy
from nemo_evaluator.proxy.upstream import Endpoint

SAMPLING_SECONDS = 1.0
ONCE = 1
"""As max_retries: most harnesses count attempts with it and take no 0."""
GRACE_SECONDS = 10.0
"""From SIGTERM to SIGKILL."""


async def run_hosted(
    run: RunConfig, environ: Mapping[str, str], stop: asyncio.Event, say: Callable[[str], None]
) -> int:
    """The harness's exit code; 0 only if results.yml is there. Raises RunFailed if its results cannot be read."""
    render(run)  # refuses before anything is written
    proxy = proxy_of(run, environ)
    write_run_config(run)
    started = datetime.now(UTC)
    async with reachable(run, proxy) as through:
        command = render(through)
        say(f"[{run.config.type}] {shown_command(run)}")
        child = await asyncio.create_subprocess_exec("/bin/sh", "-c", command, env=_environment(run, environ))
        peak = await _watched(child, stop, proxy)
    if proxy is not None and proxy.failure:
        raise RunFailed(
            f"{run.config.type} was ended: {proxy.failure}. The harness's own lines above tell which request."
        )
    if child.returncode:
        return _exit_code(child.returncode)
    result = await asyncio.to_thread(_parsed, run)
    write_results(run, shown_command(run), result)
    measured = Measured(started, datetime.now(UTC), _own_peak(), peak)
    write_metrics(run, measured, proxy.metrics() if proxy is not None else {})
    return 0


def shown_command(run: RunConfig) -> str:
    """As it would run without the proxy; an address that is a secret is masked."""
    shown = run.model_copy(deep=True)
    shown.endpoint.url = redact_url(run.endpoint.url)
    return render(shown)


def proxy_of(run: RunConfig, environ: Mapping[str, str]) -> Proxy | None:
    """None where the adapter has nothing to do."""
    config = run.adapter
    if not config.is_needed:
        return None
    folder = Path(config.output_dir) if config.output_dir else run.output_dir / "adapter"
    name = run.endpoint.api_key_name
    params = run.params
    endpoint = Endpoint(
        run.endpoint.url,
        environ[name] if name else None,
        params.parallelism,
        params.max_retries,
        params.request_timeout,
    )
    folder.mkdir(parents=True, exist_ok=True)
    return Proxy(config, endpoint, folder, environ)


@asynccontextmanager
async def reachable(run: RunConfig, proxy: Proxy | None, *, once: int = ONCE) -> AsyncIterator[RunConfig]:
    """The run as the harness is to see it: it asks the proxy, once and patiently, because the proxy does the retries.
    A harness with retries of its own would multiply them."""
    if proxy is None:
        yield run
        return
    async with proxy:
        through = run.model_copy(deep=True)
        through.endpoint.url = proxy.url
        through.params.max_retries = once
        if (patience := proxy.patience) is not None:
            through.params.request_timeout = ceil(patience)
        yield through


def _environment(run: RunConfig, environ: Mapping[str, str]) -> dict[str, str]:
    """The commands of this interpreter's environment are found even where nobody has activated it, and loopback is
    asked directly."""
    scripts = str(Path(sys.executable).parent)
    path = environ.get("PATH", os.defpath)
    without_proxy = ",".join(filter(None, (environ.get("no_proxy") or environ.get("NO_PROXY"), "127.0.0.1,localhost")))
    added = {"PATH": f"{scripts}{os.pathsep}{path}", "no_proxy": without_proxy, "NO_PROXY": without_proxy}
    if (name := run.endpoint.api_key_name) and not environ.get("OPENAI_API_KEY"):
        added["OPENAI_API_KEY"] = environ[name]
    return {**environ, **added}


async def _watched(child: asyncio.subprocess.Process, stop: asyncio.Event, proxy: Proxy | None) -> int:
    """Until the child has ended, which a stop or a refusal hastens; returns the peak memory of its tree."""
    ended = asyncio.ensure_future(child.wait())
    reasons = [asyncio.ensure_future(event.wait()) for event in (stop, proxy.failed if proxy else None) if event]
    peak = 0
    try:
        while not ended.done():
            done, _ = await asyncio.wait(
                [ended, *reasons], timeout=SAMPLING_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            peak = max(peak, resident_bytes(child.pid))
            if done.intersection(reasons):
                await _stopped(child.pid, ended)
    finally:
        for reason in reasons:
            reason.cancel()
    return peak


async def _stopped(pid: int, ended: "asyncio.Future[int]") -> None:
    terminate(pid)
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.shield(ended), GRACE_SECONDS)
    if not ended.done():
        terminate(pid, signal.SIGKILL)
        await ended


def _exit_code(returncode: int) -> int:
    return 128 - returncode if returncode < 0 else returncode


def _parsed(run: RunConfig) -> EvaluationResult:
    module = f"{NAMESPACE}.{run.pkg_name}.output"
    try:
        result = importlib.import_module(module).parse_output(run.config.output_dir)
        return EvaluationResult.model_validate(result, from_attributes=True)
    except Exception as error:  # the wheel's own code
        raise RunFailed(f"{run.config.type} ended, but {module} cannot read its results: {told(error)}.") from error


def _own_peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
